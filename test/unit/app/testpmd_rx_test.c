/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives of rocade-testpmd, with a receive CQ that this file stands for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "testpmd_rx.h"

#define RECEIVES 128
#define QPN 0x100

/* Messages that the CQ still returns, all with wr_id 0. A sender fills receives as fast as they are
 * posted. */
static uint64_t arriving;
static uint32_t message_len;
static uint64_t posts;

static struct conf conf;
static struct port_conf pc;
static struct rxq rxq;
static struct conn conn;
static struct host host;
static struct ibv_qp qp;
static uint8_t buffer[64];
static struct rx_buf bufs[RECEIVES];
static uint32_t spare[RECEIVES];

static int
fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int i;

	(void)cq;
	for (i = 0; i < n && arriving != 0 && rxq_posted(&rxq) > (unsigned)i;
		i++, arriving--)
		wc[i] = (struct ibv_wc){
			.status = IBV_WC_SUCCESS, .qp_num = QPN, .byte_len = message_len};
	return i;
}

int
rxq_post(struct rxq *q)
{
	posts++;
	q->n_spare = 0;
	return 0;
}

void
host_fail(struct host *h, const char *format, ...)
{
	(void)format;
	h->state = HOST_FAILED;
}

void
host_set_error(struct host *h, const char *format, ...)
{
	(void)format;
	h->reason[0] = '!';
}

void
host_set_running(struct host *h)
{
	h->state = HOST_RUNNING;
}

void
host_set_done(struct host *h)
{
	h->state = HOST_DONE;
}

unsigned
tx_reap(struct host *h)
{
	(void)h;
	return 0;
}

uint64_t
clock_ns(void)
{
	return 0;
}

void
host_require_heard(struct host *h, bool fails, uint64_t now)
{
	(void)now;
	(void)h;
	(void)fails;
}

void
mws_invalidated(struct host *h, const struct conn *c, uint64_t msg, uint32_t rkey)
{
	(void)h;
	(void)c;
	(void)msg;
	(void)rkey;
}

void
host_watch_restart(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

void
host_tick_passive(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

void
host_wrong_bytes(struct host *h, const struct conn *c, const char *what, uint64_t msg,
	const uint8_t *data, uint64_t len, uint64_t seed, size_t bad, size_t first)
{
	(void)c;
	(void)msg;
	(void)data;
	(void)len;
	(void)seed;
	(void)bad;
	(void)first;
	host_set_error(h, "%s", what);
}

int
host_poll_ready(struct host *h, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)h;
	return ibv_poll_cq(cq, n, wc);
}

unsigned
exchange_poll(struct host *h)
{
	(void)h;
	return 0;
}

void
exchange_watch(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

uint64_t
exchange_options(const struct host *h, char text[OPTIONS_TEXT])
{
	(void)h;
	text[0] = '\0';
	return 0;
}

const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "";
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	(void)attr;
	(void)mask;
	return 0;
}

/* A sink that runs, with all receives posted. */
static int
sink(void **state)
{
	static struct ibv_context ctx = {.ops.poll_cq = fake_poll_cq};
	static struct ibv_cq cq = {.context = &ctx};

	(void)state;
	conf = (struct conf){.sizes = {32}, .n_sizes = 1, .no_verify = true};
	for (unsigned i = 0; i < RECEIVES; i++)
		bufs[i].data = buffer;
	rxq = (struct rxq){
		.bufs = bufs, .spare = spare, .n_bufs = RECEIVES, .capacity = RECEIVES};
	conn = (struct conn){.qp = &qp, .qpn = QPN, .flow_in = QPN, .rxq = &rxq};
	host = (struct host){.conf = &conf,
		.pc = &pc,
		.ops = &sink_ops,
		.state = HOST_RUNNING,
		.conns = &conn,
		.n_conns = 1,
		.rxqs = &rxq,
		.n_rxqs = 1,
		.verbs.recv_cq = &cq};
	message_len = 32;
	posts = 0;
	return 0;
}

TEST_WITH(a_sink_that_is_behind_stops, sink, NULL)
{
	arriving = 1000000;
	host.ops->stop(&host);
	assert_int_equal(host.state, HOST_DONE);
	/* at least what had arrived when it was stopped */
	assert_in_range(host.tally.messages, RECEIVES, 4 * RECEIVES);
}

TEST_WITH(a_sink_counts_what_has_arrived, sink, NULL)
{
	arriving = RECEIVES;
	host.ops->stop(&host);
	assert_int_equal(host.tally.messages, RECEIVES);
}

/* Four cores share an SRQ, and the spare receives of the others are not posted either. */
TEST_WITH(cores_that_share_an_srq_leave_most_receives_posted, sink, NULL)
{
	rxq.sharers = 3;
	for (unsigned i = 1; i < RECEIVES / 4 / 4; i++) {
		arriving = 1;
		host.ops->reap(&host);
		assert_int_equal(posts, 0);
	}
	arriving = 1;
	host.ops->reap(&host);
	assert_int_equal(posts, 1);
}

/* The size has changed, and the QP is on its way to a new connection. */
TEST_WITH(messages_of_the_last_connection_are_dropped, sink, NULL)
{
	conf.no_verify = false;
	conn.resetting = true;
	message_len = 64;
	arriving = 3;
	assert_int_equal(host.ops->reap(&host), 3);
	assert_int_equal(host.reason[0], '\0');
	assert_int_equal(host.tally.messages, 0);
	assert_int_equal(conn.received, 0);
	assert_int_equal(rxq_posted(&rxq), RECEIVES - 3);
	assert_int_equal(posts, 0);
	conn.resetting = false;
	arriving = 1;
	host.ops->reap(&host);
	assert_int_not_equal(host.reason[0], '\0'); /* of this connection it is wrong */
}
