/* SPDX-License-Identifier: BSD-3-Clause */
/* What all parts of a host use: the time of a run that fails, and the message about wrong bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app_port.h"
#include "case.h"
#include "host.h"

static struct conf conf = {.qpn_base = 0x100, .qps = 2};
static struct port_conf pc = {
	.n_peers = 2, .peers = {{.addr = "192.0.2.2"}, {.addr = "192.0.2.3"}}};
static struct conn conn = {.qpn = 0x101};
static struct host host;
const struct mode_ops both_ops;

void
host_events(struct host *h)
{
	(void)h;
}

unsigned
app_port_poll(struct app_port *app)
{
	(void)app;
	return 0;
}

unsigned
rocade_engine_poll(struct rocade_engine *engine)
{
	(void)engine;
	return 0;
}

static void
nothing(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

static int
setup(void **state)
{
	static const struct mode_ops ops = {.tick = nothing};

	(void)state;
	host = (struct host){.conf = &conf,
		.pc = &pc,
		.peer = 1,
		.head = &host,
		.n_hosts = 1,
		.ops = &ops,
		.conns = &conn,
		.n_conns = 1,
		.state = HOST_RUNNING,
		.tally.first_ns = 5};
	return 0;
}

TEST_WITH(the_time_of_a_failed_run_ends_with_its_progress, setup, NULL)
{
	host.tally.messages = 3;
	host_tick(&host, true, 10);
	host_tick(&host, true, 20);
	host.tally.sent = 1;
	host_tick(&host, true, 30);
	host_tick(&host, true, 40);
	host_fail(&host, "gone");
	assert_int_equal(host.tally.last_ns, 30);
	host.tally.messages++;
	host_fail(&host, "again");
	assert_int_equal(host.tally.last_ns, 30);
	assert_string_equal(host.reason, "gone");
}

TEST_WITH(progress_just_before_a_failure_counts, setup, NULL)
{
	uint64_t begin = clock_ns();

	host.tally.messages = 3;
	host_tick(&host, true, 10);
	host.tally.messages = 4;
	host_fail(&host, "gone");
	assert_true(host.tally.last_ns >= begin);
}

TEST_WITH(a_run_without_progress_has_no_time, setup, NULL)
{
	host_tick(&host, true, 10);
	host_fail(&host, "gone");
	assert_int_equal(host.tally.last_ns, 0);
}

TEST_WITH(bytes_of_another_place_name_it, setup, NULL)
{
	uint8_t data[16];
	uint64_t want = verify_seed(verify_flow(0x100, 0x101, false), 9);

	verify_fill(data, sizeof(data), verify_seed(verify_flow(0x104, 0x101, false), 9));
	host_wrong_bytes(&host, &conn, "send", 9, data, sizeof(data), want, 16, 0);
	assert_string_equal(host.reason,
		"message 9 (send) of QP 0x101 was sent to peer number 4 of 192.0.2.3: expected "
		"--peer 192.0.2.3@4");
	assert_int_equal(host.tally.bad_messages, 1);
}

TEST_WITH(other_wrong_bytes_are_shown, setup, NULL)
{
	uint8_t data[16];
	uint64_t want = verify_seed(verify_flow(0x100, 0x101, false), 9);

	verify_fill(data, sizeof(data), want);
	data[5] ^= 1;
	host_wrong_bytes(&host, &conn, "send", 9, data, sizeof(data), want, 1, 5);
	assert_non_null(strstr(host.reason, "1 of its 16 bytes, the first at offset 5"));
}
