/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-perf's loops, between a clock, a link and a device that the test imitates. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <perf/perf_context.h>
#include <perf/result.h>

#include <rte_lcore.h>

#include "case.h"

#define HZ 1000
#define QPN 0x100

/* The device: what becomes of requests. */
static enum { LOST, FAILED, COMPLETED } fate;
static uint64_t posted, completed;
/* The link: the messages of the client, and how many requests had completed by then. */
static uint64_t sent[MSG_DISCONNECTED], completed_at[MSG_DISCONNECTED];
static unsigned sleeps;
static int priority_errno;

static struct perf_context ctx;
static struct result result;
static struct conf conf;
static uint8_t memory[64];

static uint64_t clock_ticks;

uint64_t
perf_clock(void)
{
	return clock_ticks += HZ / 50;
}

uint64_t
rte_get_tsc_hz(void)
{
	return HZ;
}

unsigned
rte_get_next_lcore(unsigned i, int skip_main, int wrap)
{
	(void)i;
	(void)skip_main;
	(void)wrap;
	return 1;
}

unsigned
rocade_engine_poll(struct rocade_engine *engine)
{
	(void)engine;
	return 0;
}

int
rocade_engine_launch(struct rocade_engine *engine, unsigned lcore)
{
	(void)engine;
	(void)lcore;
	return 0;
}

int
rocade_engine_stop(struct rocade_engine *engine)
{
	(void)engine;
	return 0;
}

struct rocade_engine *
rocade_port_engine(struct rocade_port *port, unsigned index)
{
	(void)port;
	(void)index;
	return NULL;
}

const char *
rocade_error(void)
{
	return "";
}

int
sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	(void)pid;
	(void)policy;
	(void)param;
	errno = priority_errno;
	return priority_errno != 0 ? -1 : 0;
}

/* A sleep of a second, in which nothing happens. */
int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	(void)fds;
	(void)count;
	assert_int_equal(timeout_ms, 1000);
	sleeps++;
	clock_ticks += HZ;
	return 0;
}

int
link_send(int fd, const struct msg *msg)
{
	(void)fd;
	sent[msg->kind]++;
	completed_at[msg->kind] = completed;
	return 0;
}

int
link_recv(int fd, enum msg_kind kind, struct msg *msg)
{
	(void)fd;
	msg->kind = kind;
	return 0;
}

bool
link_poll(int fd, struct msg *msg)
{
	(void)fd;
	if (sent[MSG_END] == 0)
		return false;
	*msg = (struct msg){.kind = MSG_TALLY};
	return true;
}

void
perf_fill_tally(struct perf_context *perf, struct tally *tally)
{
	(void)perf;
	(void)tally;
}

int
perf_send_tally(struct perf_context *perf, struct tally *tally)
{
	(void)perf;
	(void)tally;
	return 0;
}

static struct ibv_cq send_cq, recv_cq;

static int
cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	assert_true(n > 0);
	if (cq != &send_cq || fate == LOST || completed == posted)
		return 0;
	completed = posted;
	*wc = (struct ibv_wc){.wr_id = posted,
		.qp_num = QPN,
		.status = fate == FAILED ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS};
	return 1;
}

static int
cq_notify(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	(void)solicited;
	return 0;
}

static int
qp_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	for (; wr != NULL; wr = wr->next)
		posted = wr->wr_id;
	return 0;
}

static struct ibv_context device = {
	.ops = {.poll_cq = cq_poll, .req_notify_cq = cq_notify, .post_send = qp_post}};
static struct ibv_comp_channel channel;
static struct ibv_qp qp = {.context = &device, .qp_num = QPN};
static struct conn conns[2];

/* A run of one second after a warm-up of ten milliseconds. */
static void
run_prepare(enum mode mode, bool server)
{
	posted = completed = 0;
	sleeps = 0;
	priority_errno = 0;
	memset(sent, 0, sizeof(sent));
	memset(memory, 0, sizeof(memory));
	send_cq.context = recv_cq.context = &device;
	conns[0] = (struct conn){.qp = &qp};
	conf = (struct conf){.server = server};
	ctx = (struct perf_context){.conf = &conf,
		.plan = {.mode = mode,
			.size = 64,
			.qps = 1,
			.burst = 8,
			.signal_every = 4,
			.sq_depth = 16,
			.seconds = 1,
			.warmup_ms = 10},
		.verbs = {.send_cq = &send_cq, .recv_cq = &recv_cq},
		.conns = conns,
		.buffers = {.source = memory, .target = memory}};
	for (unsigned i = 0; i + 1 < BURST_MAX; i++)
		ctx.wr[i].next = &ctx.wr[i + 1];
	memset(&result, 0, sizeof(result));
}

static const enum mode latency_modes[] = {MODE_PINGPONG, MODE_WRITE_LAT, MODE_READ_LAT};

TEST(a_lost_message_ends_each_latency_mode)
{
	static uint8_t target[64]; /* is not written */

	fate = LOST;
	for (unsigned i = 0; i < 3; i++) {
		run_prepare(latency_modes[i], false);
		ctx.buffers.target = target;
		assert_int_equal(latency_client(&ctx, &result), -1);
		assert_string_equal(ctx.reason, "no completion for 10 s");
		assert_int_equal(sent[MSG_END], 0);
	}
}

TEST(a_lost_message_ends_a_client_that_sleeps)
{
	fate = LOST;
	run_prepare(MODE_PINGPONG, false);
	ctx.verbs.channel = &channel;
	assert_int_equal(latency_client(&ctx, &result), -1);
	assert_string_equal(ctx.reason, "no completion for 10 s");
	assert_in_range(sleeps, 10, 12); /* not 1024 */
}

TEST(a_failed_request_ends_the_wait_for_an_answer)
{
	static uint8_t target[64];

	fate = FAILED;
	for (unsigned i = 0; i < 3; i++) {
		run_prepare(latency_modes[i], false);
		ctx.buffers.target = target;
		assert_int_equal(latency_client(&ctx, &result), -1);
		assert_non_null(strstr(ctx.reason, "request of QP 0x100 failed: "));
	}
	run_prepare(MODE_PINGPONG, true);
	posted = 1;
	assert_int_equal(latency_server(&ctx), -1);
	assert_non_null(strstr(ctx.reason, "request of QP 0x100 failed: "));
}

TEST(a_rate_counts_each_request_of_the_window)
{
	fate = COMPLETED;
	run_prepare(MODE_WRITE, false);
	assert_int_equal(rate_client(&ctx, &result), 0);
	assert_int_equal(sent[MSG_BEGIN], 1);
	assert_int_equal(sent[MSG_END], 1);
	assert_true(result.tally.messages > 0);
	assert_int_equal(
		result.tally.messages, completed_at[MSG_END] - completed_at[MSG_BEGIN]);
}

/* Whatever the QPNs are: those of a daemon's client are not in order. */
TEST(a_completion_is_of_the_conn_that_posted)
{
	fate = COMPLETED;
	run_prepare(MODE_WRITE, false);
	conns[1] = (struct conn){.qp = &qp, .posted = UINT32_MAX, .acked = UINT32_MAX};
	assert_true(perf_post(&ctx, &conns[1], 3));
	assert_int_equal(conn_outstanding(&conns[1]), 3);
	assert_int_equal(perf_reap(&ctx), 0);
	assert_int_equal(conn_outstanding(&conns[1]), 0);
	assert_int_equal(conns[0].acked, 0);
	assert_int_equal(ctx.watch.progress, 3);
}

TEST(reads_are_measured)
{
	fate = COMPLETED;
	run_prepare(MODE_READ_LAT, false);
	assert_int_equal(latency_client(&ctx, &result), 0);
	assert_true(result.tally.messages > 0);
	assert_in_range(completed - result.tally.messages, 0, completed - 1);
}

TEST(without_permission_there_is_no_priority)
{
	run_prepare(MODE_PINGPONG, false);
	priority_errno = EPERM;
	assert_int_equal(events_set_priority(&ctx, true), 0); /* sleeps not */
	ctx.lcore = 1;
	assert_int_equal(events_set_priority(&ctx, true), -1);
	assert_int_equal(ctx.code, EXIT_ENVIRONMENT);
	assert_non_null(strstr(ctx.reason, "SCHED_FIFO"));
	run_prepare(MODE_PINGPONG, false);
	ctx.lcore = 1;
	assert_int_equal(events_set_priority(&ctx, true), 0);
	assert_string_equal(ctx.reason, "");
}
