/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_fixture.h"

/* An ARP request for 192.0.2.1 from 192.0.2.2 (02:00:00:00:00:02), after RFC 826. */
static const uint8_t request[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2,
	0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2, 0, 0, 0, 0, 0,
	0, 192, 0, 2, 1};
static const uint8_t answer[42] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1,
	8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2};

#define OP 21
#define SENDER_MAC 22
#define SENDER_IP 28
#define TARGET_IP 38

static struct pkt
request_with(unsigned off, const void *bytes, size_t len)
{
	struct pkt pkt = frame_exact(request, sizeof(request));

	memcpy(pkt.data + off, bytes, len);
	return pkt;
}

static bool
answered(struct net *net, struct pkt pkt)
{
	struct pkt out = net_ask(net, &pkt, T0);

	free(out.data);
	free(pkt.data);
	return out.data != NULL;
}

static void
request_is_answered_and_teaches(void **state)
{
	struct net *net = net_of(1, 0);
	struct pkt in = frame_exact(request, sizeof(request));
	struct pkt out = net_ask(net, &in, T0);

	assert_int_equal(out.len, 60);
	assert_memory_equal(out.data, answer, sizeof(answer));
	for (unsigned i = sizeof(answer); i < out.len; i++)
		assert_int_equal(out.data[i], 0);
	assert_true(net_knows(net, "192.0.2.2"));
	free(out.data);
	free(in.data);
	net_destroy(net);
}

static void
tagged_requests_get_tagged_answers(void **state)
{
	static const uint8_t tag[4] = {0x81, 0x00, 0xe0, 100}; /* priority 7 */
	struct net *net = net_of(1, 100);
	uint8_t bytes[46];
	struct pkt in, out;

	memcpy(bytes, request, 12);
	memcpy(bytes + 12, tag, 4);
	memcpy(bytes + 16, request + 12, 30);
	in = frame_exact(bytes, sizeof(bytes));
	out = net_ask(net, &in, T0);
	assert_non_null(out.data);
	assert_int_equal(out.data[12] << 8 | out.data[13], 0x8100);
	assert_int_equal(out.data[14] << 8 | out.data[15], 100);
	assert_memory_equal(out.data + 16, answer + 12, 30);
	free(out.data);
	in.data[15] = 101;
	assert_false(answered(net, in));
	assert_false(answered(net, frame_exact(request, sizeof(request)))); /* untagged */
	bytes[14] = bytes[15] = 0; /* a priority, no VLAN: as untagged */
	assert_false(answered(net, frame_exact(bytes, sizeof(bytes))));
	assert_int_equal(neigh_count(net, T0).all, 1);
	net_destroy(net);
	net = net_of(1, 0);
	bytes[15] = 100;
	assert_false(answered(net, frame_exact(bytes, sizeof(bytes))));
	bytes[15] = 0;
	assert_true(answered(net, frame_exact(bytes, sizeof(bytes))));
	net_destroy(net);
}

/* An ARP probe (RFC 5227): answered, but nothing is learned from it. */
static void
probe_is_answered_and_teaches_nothing(void **state)
{
	static const uint8_t zero[4];
	struct net *net = net_of(1, 0);

	assert_true(answered(net, request_with(SENDER_IP, zero, 4)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

static void
requests_for_others_are_ignored(void **state)
{
	static const uint8_t other_ip[4] = {192, 0, 2, 3}, ours[4] = {192, 0, 2, 1},
			     far[4] = {10, 0, 0, 1}, group[6] = {1, 0, 0, 0, 0, 2},
			     our_mac[6] = {2, 0, 0, 0, 0, 1},
			     other_mac[6] = {2, 0, 0, 0, 0, 9};
	struct net *net = net_of(1, 0);

	assert_false(answered(net, request_with(TARGET_IP, other_ip, 4)));
	assert_false(answered(net, request_with(0, other_mac, 6)));
	/* our own frame, looped back */
	assert_false(answered(net, request_with(6, our_mac, 6)));
	assert_false(answered(net, request_with(6, group, 6)));
	assert_false(answered(net, request_with(SENDER_MAC, group, 6)));
	assert_false(answered(net, request_with(SENDER_MAC, our_mac, 6)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	/* Answered, but not learned: our own address as the sender, an address of another
	 * network. */
	assert_true(answered(net, request_with(SENDER_IP, ours, 4)));
	assert_true(answered(net, request_with(SENDER_IP, far, 4)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

static void
other_hardware_and_protocols_are_ignored(void **state)
{
	struct net *net = net_of(1, 0);

	for (unsigned off = 14; off < 22; off++) {
		uint8_t wrong = request[off] ^ 0x04;

		assert_false(answered(net, request_with(off, &wrong, 1)));
	}
	for (size_t len = 0; len < sizeof(request); len++)
		assert_false(answered(net, frame_exact(request, len)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	net_destroy(net);
}

/* Gratuitous requests, requests for other addresses and unsolicited replies update known
 * neighbours and add none. */
static void
unsolicited_arp_updates_known_neighbours_only(void **state)
{
	static const uint8_t self[4] = {192, 0, 2, 2}, new_mac[6] = {2, 0, 0, 0, 0, 7},
			     reply = 2;
	struct net *net = net_of(1, 0);
	uint32_t generation;
	struct pkt pkt;
	uint8_t mac[6];

	assert_false(answered(net, request_with(TARGET_IP, self, 4)));
	assert_false(answered(net, request_with(OP, &reply, 1)));
	assert_int_equal(neigh_count(net, T0).all, 0);
	assert_true(answered(net, frame_exact(request, sizeof(request))));
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), 0);
	assert_true(mac_is(mac, 2));
	generation = net_generation(net);
	pkt = request_with(TARGET_IP, self, 4);
	memcpy(pkt.data + SENDER_MAC, new_mac, 6);
	assert_false(answered(net, pkt));
	assert_int_not_equal(net_generation(net), generation);
	assert_int_equal(net_resolve(net, gid_of("192.0.2.2"), mac, T0), 0);
	assert_true(mac_is(mac, 7));
	net_destroy(net);
}

static void
requests_are_built_as_the_rfc_says(void **state)
{
	struct net *net = net_of(2, 0);
	struct pkt out;
	uint8_t mac[6];

	(void)net_resolve(net, gid_of("192.0.2.1"), mac, T0);
	out = net_send(net, T0);
	assert_int_equal(out.len, 60);
	assert_memory_equal(out.data, request, sizeof(request));
	free(out.data);
	net_destroy(net);
}

static void
no_reply_without_room(void **state)
{
	struct net *net = net_of(1, 0);
	struct pkt in = frame_exact(request, sizeof(request));

	for (unsigned room = 0; room <= 60; room++) {
		struct pkt out = frame_empty(room);

		assert_int_equal(net_rx(net, &in, &out, T0), room == 60);
		free(out.data);
	}
	free(in.data);
	net_destroy(net);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_is_answered_and_teaches),
		cmocka_unit_test(tagged_requests_get_tagged_answers),
		cmocka_unit_test(probe_is_answered_and_teaches_nothing),
		cmocka_unit_test(requests_for_others_are_ignored),
		cmocka_unit_test(other_hardware_and_protocols_are_ignored),
		cmocka_unit_test(unsolicited_arp_updates_known_neighbours_only),
		cmocka_unit_test(requests_are_built_as_the_rfc_says),
		cmocka_unit_test(no_reply_without_room),
	};

	return cmocka_run_group_tests_name("arp", tests, NULL, NULL);
}
