/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "peers.h"
#include "testpmd_parse.h"
#include "verify.h"

static struct port_conf pc;

static void
set_up(const char *addr)
{
	pc = (struct port_conf){0};
	strcpy(pc.addr, addr);
}

static void
expect(unsigned i, const char *addr, unsigned place)
{
	assert_string_equal(pc.peers[i].addr, addr);
	assert_int_equal(pc.peers[i].place, place);
}

TEST(peers_are_a_list_that_is_added_to)
{
	set_up("192.0.2.1/24");
	assert_true(peers_add(&pc, "192.0.2.2"));
	assert_int_equal(pc.n_peers, 1);
	assert_true(peers_add(&pc, "2001:db8::9@63,192.0.2.4"));
	assert_int_equal(pc.n_peers, 3);
	expect(0, "192.0.2.2", 0);
	expect(1, "2001:db8::9", 63);
	expect(2, "192.0.2.4", 0);
	assert_string_equal(pc.peer, "192.0.2.2,2001:db8::9@63,192.0.2.4");
	pc.peer_open = false; /* `set peer`, or another --port */
	assert_true(peers_add(&pc, "192.0.2.7"));
	assert_int_equal(pc.n_peers, 1);
	expect(0, "192.0.2.7", 0);
}

TEST(wrong_lists_change_nothing)
{
	static const char *const wrong[] = {"", ",", "192.0.2.3,", "192.0.2.3,192.0.2.3",
		"192.0.2.3@0,192.0.2.3@1", "192.0.2.2", "2001:db8::1,2001:DB8:0::1",
		"192.0.2.3@64", "192.0.2.3@", "192.0.2.3@-1", "@1", "224.0.0.1",
		"192.0.2.3@1@2", "192.0.2.3@0000001"};

	set_up("192.0.2.1/24");
	assert_true(peers_add(&pc, "192.0.2.2"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (peers_add(&pc, wrong[i]))
			fail_msg("'%s' is taken", wrong[i]);
		assert_string_equal(pc.peer, "192.0.2.2");
		assert_int_equal(pc.n_peers, 1);
	}
}

TEST(at_most_64_peers)
{
	char text[24];

	set_up("192.0.2.1/24");
	for (int i = 0; i < 64; i++) {
		snprintf(text, sizeof(text), "10.0.0.%d", i + 1);
		assert_true(peers_add(&pc, text));
	}
	assert_int_equal(pc.n_peers, 64);
	assert_false(peers_add(&pc, "10.0.0.99"));
}

/* The place that an end has at each other one is that of the other one's list. */
TEST(one_list_of_all_ends_gives_each_its_places)
{
	static const char *const ends[] = {
		"192.0.2.1", "192.0.2.2", "2001:db8::3", "192.0.2.4"};
	struct port_conf all[4];

	for (unsigned i = 0; i < 4; i++) {
		set_up("198.51.100.1/24");
		snprintf(pc.addr, sizeof(pc.addr), "198.51.100.1/24,%s/24", ends[i]);
		assert_true(
			peers_add(&pc, "192.0.2.1,192.0.2.2,2001:db8:0::3,192.0.2.4"));
		assert_int_equal(pc.n_peers, 3);
		all[i] = pc;
	}
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned p = 0; p < 3; p++) {
			unsigned other = p + (p >= i);

			assert_int_equal(all[i].peers[p].place, i - (i > other));
		}
	}
	expect(0, "192.0.2.1", 2);
}

TEST(a_list_of_this_end_only_has_no_peer)
{
	set_up("192.0.2.1/24,2001:db8::1/64");
	assert_true(peers_add(&pc, "2001:db8:0:0::1"));
	assert_int_equal(pc.n_peers, 0);
	assert_string_equal(pc.peers[0].addr, "");
}

TEST(a_new_address_is_looked_for_in_the_list)
{
	set_up("192.0.2.9/24");
	assert_true(peers_add(&pc, "192.0.2.1,192.0.2.2"));
	assert_int_equal(pc.n_peers, 2);
	strcpy(pc.addr, "192.0.2.2/24");
	peers_set(&pc);
	assert_int_equal(pc.n_peers, 1);
	expect(0, "192.0.2.1", 0);
	peers_replace(&pc, "192.0.2.77");
	expect(0, "192.0.2.77", 0);
	assert_string_equal(pc.peer, "192.0.2.77");
}

TEST(fairness_is_jains_index)
{
	assert_true(peers_fairness((const uint64_t[]){5, 5, 5, 5}, 4) == 1.0);
	assert_true(peers_fairness((const uint64_t[]){7, 0, 0, 0}, 4) == 0.25);
	assert_true(peers_fairness((const uint64_t[]){3, 1}, 2) == 0.8);
	assert_true(peers_fairness((const uint64_t[]){0, 0}, 2) == 0.0);
}

TEST(the_wrong_peer_of_a_list_is_named)
{
	set_up("192.0.2.1/24");
	assert_false(peers_add(&pc, "192.0.2.2,,192.0.2.3"));
	assert_string_equal(list_why(), "entry 2, '', is empty");
	assert_false(peers_add(&pc, "192.0.2.2,192.0.2.3@64"));
	assert_string_equal(list_why(),
		"entry 2, '192.0.2.3@64', has no number from 0 to 63 behind @");
	assert_true(peers_add(&pc, "192.0.2.2"));
	assert_false(peers_add(&pc, "192.0.2.2"));
	assert_string_equal(list_why(), "entry 2, '192.0.2.2', comes twice");
}

/* A list with an address of this end is one of all ends. */
TEST(a_list_of_all_ends_has_rules)
{
	static const struct {
		const char *list, *entry, *wrong; /* NULL: it is a good list */
	} rows[] = {{"192.0.2.9@3,192.0.2.8", NULL, NULL},
		{"192.0.2.9,192.0.2.2,192.0.2.8", NULL, NULL},
		{"192.0.2.9@3,2001:db8::9", NULL, NULL},
		{"192.0.2.9,192.0.2.2@0", "192.0.2.2", "without @N"},
		{"192.0.2.9@3,192.0.2.2", "192.0.2.9", "has @N in a list of all ends"},
		{"192.0.2.1,192.0.2.9,192.0.2.2", "192.0.2.2",
			"the second of the port's own"},
		{"192.0.2.1,2001:db8::1", "2001:db8::1", "the second of the port's own"},
		{"192.0.2.1,2001:db8::9", "2001:db8::9", "another family"},
		{"192.0.2.9,2001:db8::1", "192.0.2.9", "another family"}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char entry[PEER_TEXT_MAX];
		const char *wrong;

		set_up("192.0.2.1/24,192.0.2.2/24,2001:db8::1/64");
		assert_true(peers_add(&pc, rows[i].list));
		wrong = peers_list_wrong(&pc, entry);
		assert_int_equal(wrong == NULL, rows[i].wrong == NULL);
		if (wrong == NULL)
			continue;
		assert_non_null(strstr(wrong, rows[i].wrong));
		assert_string_equal(entry, rows[i].entry);
	}
}

/* An end with 2 QPs for each of two peers gets a message whose sender has it at place 5. */
TEST(the_place_of_this_end_is_found_by_the_bytes_of_a_message)
{
	static struct conf conf = {.qpn_base = 0x100, .qps = 4};
	uint8_t data[24];

	set_up("192.0.2.1/24");
	assert_true(peers_add(&pc, "192.0.2.8,192.0.2.9"));
	verify_fill(data, sizeof(data),
		verify_seed(verify_flow(0x100 + 5 * 2 + 1, 0x103, false), 77));
	assert_int_equal(
		peers_place_of(&conf, &pc, 0x103, false, 77, data, sizeof(data)), 5);
	assert_int_equal(
		peers_place_of(&conf, &pc, 0x103, false, 78, data, sizeof(data)), -1);
	assert_int_equal(
		peers_place_of(&conf, &pc, 0x102, false, 77, data, sizeof(data)), -1);
	assert_int_equal(
		peers_place_of(&conf, &pc, 0x103, true, 77, data, sizeof(data)), -1);
	/* A few bytes may be right by chance. */
	assert_int_equal(peers_place_of(&conf, &pc, 0x103, false, 77, data, 7), -1);
	assert_int_equal(peers_place_of(&conf, &pc, 0x103, false, 77, data, 8), 5);
}
