/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP with several paths: when a path gets another UDP source port (docs/protocol.md 20.7),
 * and which QPs have several. */
#include <stdlib.h>

#include "multipath_fixture.h"

/* All packets of path 1 get lost. It gets another port; the other paths keep theirs. */
TEST(dead_path_gets_another_port)
{
	uint16_t before[PATHS];

	open_paths();
	for (unsigned i = 0; i < PATHS; i++)
		before[i] = path_port(&p.a, i);
	send_some(12);
	deliver_only(0xeee); /* but 0, 4, 8: path 1 */
	lose(3);
	respond(2);
	pass(LATE);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	send_some(1);
	deliver_only(0x1);
	respond(1);
	assert_int_equal(p.a.stats.paths_moved, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_not_equal(port_of(&p.a, i), before[1]);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	for (unsigned i = 0; i < PATHS; i++)
		assert_true((path_port(&p.a, i) == before[i]) == (i != 1));
	close_paths();
}

/* Returns the first frame of path 1. */
static unsigned
first_of_path_1(void)
{
	unsigned i = 0;

	while (port_of(&p.a, i) != path_port(&p.a, 1))
		i++;
	assert_true(i < p.a.wire_count);
	return i;
}

/* Delivers what b has to say. */
static void
answer(void)
{
	(void)host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
}

/* Path 1 loses three packets, but others arrive in between. Its first copy stays under way, so
 * that this is one busy period. */
TEST(lossy_path_keeps_its_port)
{
	uint16_t before;

	open_paths();
	before = path_port(&p.a, 1);
	for (unsigned i = 0; i < 2; i++) {
		send_some(8);
		wire_drop(&p.a, first_of_path_1());
		deliver_only(i == 0 ? 0x7f : 0xfe);
		assert_int_equal(p.a.wire_count, i);
		answer();
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	}
	send_some(4);
	wire_drop(&p.a, first_of_path_1());
	deliver_only(0x1c); /* all but the two copies */
	assert_int_equal(p.a.wire_count, 2);
	answer();
	pass(LATE);
	(void)host_pull(&p.a, PULL_ALL);
	send_some(1);
	wire_deliver(&p.a, p.a.wire_count - 1);
	answer();
	assert_true(multipath_of(&p.a.qp)->path[1].lost > 0);
	assert_int_equal(p.a.stats.paths_moved, 0);
	assert_int_equal(path_port(&p.a, 1), before);
	qp_link_drain(&p);
	expect_all();
	close_paths();
}

/* However often the paths move, no two have one port. */
TEST(ports_differ)
{
	open_paths();
	for (unsigned i = 0; i < 10000; i++) {
		multipath_timeout(&p.a.qp);
		for (unsigned a = 0; a < PATHS; a++) {
			assert_true(path_port(&p.a, a) >= 0xC000);
			for (unsigned b = 0; b < a; b++)
				assert_int_not_equal(
					path_port(&p.a, a), path_port(&p.a, b));
		}
	}
	close_paths();
}

/* Three probes of a connection that does not spread yet: its only path gets another port. The
 * others' ports do not follow it. */
TEST(probes_move_the_own_path)
{
	uint16_t own, other;

	open_paths();
	p.a.peer.extensions = 0;
	own = path_port(&p.a, 0);
	other = path_port(&p.a, 1);
	send_some(1);
	lose(1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(path_port(&p.a, 0), own);
		pass(p.a.qp.req.tlp_deadline - p.now);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		if (i < 2)
			lose(1);
	}
	assert_int_not_equal(port_of(&p.a, 0), own);
	assert_int_equal(port_of(&p.a, 0), path_port(&p.a, 0));
	assert_int_equal(path_port(&p.a, 1), other);
	assert_int_equal(p.a.stats.paths_moved, 1);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_paths();
}

TEST(ack_timeout_moves_all_paths)
{
	uint16_t before[PATHS];

	open_paths();
	p.a.shared.tlp_off = true;
	for (unsigned i = 0; i < PATHS; i++)
		before[i] = path_port(&p.a, i);
	send_some(4);
	lose(4);
	pass(UINT64_C(4096) << p.a.qp.params.timeout);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_not_equal(path_port(&p.a, i), before[i]);
	assert_int_equal(p.a.stats.paths_moved, PATHS);
	wire_deliver_all(&p.a);
	respond(1);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	p.a.stats.ack_timeouts = 0;
	expect_all();
	close_paths();
}

/* Acknowledgements get lost: the second duplicate makes the responder send from another port.
 * Two of one burst, or with something new in between, do not. */
TEST(duplicates_move_the_responder)
{
	uint16_t port;

	open_paths();
	port = path_port(&p.b, 0);
	inject_nth(0, true);
	inject_nth(0, true);
	respond(1);
	assert_int_equal(path_port(&p.b, 0), port);
	send_some(1);
	deliver_only(0x1);
	respond(1);
	expect_all();
	pass(100 * NS_PER_US);
	inject_nth(0, true);
	respond(1);
	pass(49 * NS_PER_US);
	inject_nth(0, true);
	respond(1);
	assert_int_equal(path_port(&p.b, 0), port);
	pass(1 * NS_PER_US);
	inject_nth(0, true);
	assert_int_not_equal(path_port(&p.b, 0), port);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	assert_int_equal(port_of(&p.b, 0), path_port(&p.b, 0));
	wire_deliver_all(&p.b);
	assert_int_equal(p.b.stats.paths_moved, 1);
	/* not again within 1 ms */
	port = path_port(&p.b, 0);
	for (unsigned i = 0; i < 10; i++) {
		inject_nth(0, true);
		respond(1);
		pass(99 * NS_PER_US);
	}
	assert_int_equal(path_port(&p.b, 0), port);
	pass(10 * NS_PER_US);
	inject_nth(0, true);
	respond(1);
	assert_int_not_equal(path_port(&p.b, 0), port);
	close_paths();
}

/* A QP in RESET keeps its ports, and what it knew of packets is gone. */
TEST(reset_begins_anew)
{
	uint16_t port;

	open_paths();
	port = path_port(&p.a, 3);
	send_some(3);
	wire_drop_all(&p.a);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_int_equal(multipath_of(&p.a.qp)->path[1].inflight, 0);
	assert_int_equal(path_port(&p.a, 3), port);
	multipath_detach(&p.a.qp);
	multipath_detach(&p.b.qp);
	multipaths_fini(&multipaths);
	close_discard();
}

/* Only MULTIPATH_QPS QPs of an engine have several paths, and only reliable ones. */
TEST(states_have_a_limit)
{
	struct multipaths all;
	struct qp_shared shared = {.multipaths = &all};
	struct qp *qps = calloc(MULTIPATH_QPS + 1, sizeof(*qps));

	assert_non_null(qps);
	assert_int_equal(multipaths_init(&all, PATHS_MAX), 0);
	qps[0] = (struct qp){.shared = &shared, .type = IBV_QPT_UD};
	multipath_attach(&qps[0]);
	assert_int_equal(qps[0].multipath, 0);
	for (unsigned i = 0; i <= MULTIPATH_QPS; i++) {
		qps[i] = (struct qp){.shared = &shared, .type = IBV_QPT_RC};
		multipath_attach(&qps[i]);
		assert_true((qps[i].multipath != 0) == (i < MULTIPATH_QPS));
	}
	multipath_detach(&qps[7]);
	multipath_attach(&qps[MULTIPATH_QPS]);
	assert_int_not_equal(qps[MULTIPATH_QPS].multipath, 0);
	for (unsigned i = 0; i <= MULTIPATH_QPS; i++)
		multipath_detach(&qps[i]);
	multipaths_fini(&all);
	shared.multipaths = NULL;
	multipath_attach(&qps[0]);
	assert_int_equal(qps[0].multipath, 0);
	free(qps);
}

TEST(setting_is_checked)
{
	static const char *const bad[] = {"", "0", "9", "4x", "12", "-1", "four"};
	uint8_t paths = 3;
	char why[80];

	unsetenv("ROCADE_PATHS");
	assert_int_equal(multipath_conf_read(&paths, why, sizeof(why)), 0);
	assert_int_equal(paths, 3);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("ROCADE_PATHS", bad[i], 1);
		assert_int_equal(multipath_conf_read(&paths, why, sizeof(why)), -EINVAL);
		assert_int_equal(paths, 3);
		assert_non_null(strstr(why, "expected 1 to 8"));
	}
	for (char n = '1'; n <= '8'; n++) {
		const char text[2] = {n, '\0'};

		setenv("ROCADE_PATHS", text, 1);
		assert_int_equal(multipath_conf_read(&paths, why, sizeof(why)), 0);
		assert_int_equal(paths, n - '0');
	}
	unsetenv("ROCADE_PATHS");
}
