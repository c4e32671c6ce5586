/* SPDX-License-Identifier: BSD-3-Clause */
/* How a receiver notices that its peer repeats messages. This file stands for the port and for verbs. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "host.h"

#define CHECK_NS (NS_PER_SECOND / 10)

static uint64_t duplicates; /* that the QP has received */
static uint64_t others;     /* that other QPs of the port have received */
static uint32_t psn;        /* that it expects */
static unsigned connects;
static uint64_t now_ns;
static struct conf conf = {.sizes = {64}, .n_sizes = 1, .timeout = 14};
static struct port_conf pc = {.peers = {{.addr = "192.0.2.2"}}};
static struct conn conns[2]; /* the second one is there when a test says so */
static struct host host, both_ends[2];

uint64_t
clock_ns(void)
{
	return now_ns;
}

int
rocade_qp_info_sized(struct ibv_qp *qp, struct rocade_qp_info *info, size_t size)
{
	(void)qp;
	(void)size;
	*info = (struct rocade_qp_info){.rq_psn = psn};
	return 0;
}

unsigned
rocade_qp_stats_sized(
	struct ibv_qp *qp, struct rocade_stat *rows, unsigned n, size_t row_size)
{
	(void)qp;
	(void)row_size;
	(void)n;
	rows[0] = (struct rocade_stat){.name = "duplicates", .value = duplicates};
	return 1;
}

void
host_snapshot(struct host *h, int engine, struct snapshot *snapshot)
{
	(void)h;
	(void)engine;
	snapshot->n = 0;
}

uint64_t
snapshot_value(const struct snapshot *snapshot, const char *name)
{
	(void)snapshot;
	return strcmp(name, "duplicates") == 0 ? duplicates + others : 0;
}

int
host_connect(struct host *h, bool (*which)(const struct conn *conn))
{
	(void)h;
	connects += which(&conns[0]);
	conns[0].failed = false;
	return 0;
}

void
host_log(const struct host *h, const char *format, ...)
{
	(void)h;
	(void)format;
}

void
host_fail(struct host *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(h->reason, sizeof(h->reason), format, args);
	va_end(args);
	h->state = HOST_FAILED;
}

static int
setup(void **state)
{
	(void)state;
	duplicates = others = connects = 0;
	psn = 0;
	now_ns = NS_PER_SECOND;
	conf.loop = false;
	conns[0] = (struct conn){.qpn = 0x100, .received = 1};
	conns[1] = (struct conn){.qpn = 0x101, .received = 1};
	host = (struct host){.conf = &conf,
		.pc = &pc,
		.path.mtu = IBV_MTU_1024,
		.conns = conns,
		.n_conns = 1,
		.state = HOST_RUNNING};
	return 0;
}

/* Looks n times, with a duplicate before each. */
static void
checks(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		duplicates++;
		now_ns += CHECK_NS;
		host_watch_restart(&host, now_ns);
	}
}

TEST_WITH(a_peer_that_repeats_its_first_message_for_long_hears_nothing, setup, NULL)
{
	psn = 1;
	checks(6); /* the first one sees the message itself */
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
	checks(1);
	assert_int_equal(connects, 0);
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_FAILED);
	assert_non_null(
		strstr(host.reason, "192.0.2.2 repeats its first message to QP 0x100"));
}

/* Repeats with an ACK timeout that is longer than several checks, which find something at other QPs. */
static void
late_repeats(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		checks(1);
		for (unsigned k = 0; k < 4; k++) {
			others++;
			now_ns += CHECK_NS;
			host_watch_restart(&host, now_ns);
		}
	}
}

TEST_WITH(a_restarted_peer_with_a_long_ack_timeout_is_noticed, setup, NULL)
{
	psn = 5;
	late_repeats(6); /* the first one sees progress */
	assert_int_equal(connects, 0);
	psn = 6;
	late_repeats(6);
	assert_int_equal(connects, 0);
	late_repeats(1);
	assert_int_equal(connects, 1);
}

TEST_WITH(a_peer_that_goes_on_has_heard_the_acknowledgement, setup, NULL)
{
	psn = 1;
	checks(8);
	assert_true(conns[0].unheard);
	psn = 2;
	checks(1);
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
}

/* Its next message comes without a duplicate, and so without a check. */
TEST_WITH(a_peer_that_goes_on_without_a_repeat_has_heard_it, setup, NULL)
{
	psn = 1;
	checks(8);
	psn = 2;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
}

/* Each QP sends its second message when the first one of all is acknowledged. */
TEST_WITH(a_peer_that_goes_on_with_another_qp_has_heard_it, setup, NULL)
{
	host.n_conns = 2;
	psn = 1;
	checks(8);
	conns[1].received = 2;
	host_require_heard(&host, true, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
}

/* A QP that gets one message. */
TEST_WITH(a_peer_that_repeats_no_more_has_heard_it, setup, NULL)
{
	uint64_t timeouts_ns = 5 * (UINT64_C(4096) << 14);

	psn = 1;
	checks(8);
	now_ns += timeouts_ns;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
	now_ns--;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(a_repeat_since_the_last_check_counts, setup, NULL)
{
	psn = 1;
	checks(8);
	duplicates++;
	now_ns += NS_PER_SECOND;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_FAILED);
}

/* The run has failed: the peer may have given up. */
TEST_WITH(a_failed_run_says_what_its_peer_did_before, setup, NULL)
{
	psn = 1;
	checks(8);
	now_ns += NS_PER_SECOND;
	host_require_heard(&host, true, now_ns);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(a_sender_in_this_process_says_whether_it_is_done, setup, NULL)
{
	conf.loop = true;
	both_ends[0] = (struct host){.n_hosts = 1, .state = HOST_FAILED};
	both_ends[1] = (struct host){.index = 1, .n_hosts = 1};
	host.head = &both_ends[1];
	psn = 1;
	checks(8);
	both_ends[0].state = HOST_DONE;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
	both_ends[0].state = HOST_FAILED;
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(a_restarted_peer_is_connected_again, setup, NULL)
{
	psn = 9;
	checks(7);
	assert_int_equal(connects, 1);
	assert_int_equal(host.tally.restarts, 1);
	host_require_heard(&host, false, now_ns);
	assert_int_equal(host.state, HOST_RUNNING);
}
