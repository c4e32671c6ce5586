/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain verbs program whose ways to behave are its first argument; it goes on until its
 * standard input ends. test/e2e/bad_clients.py kills some of it, and looks at what the
 * others say.
 *   pair      two processes; the one verifies all that the other sends
 *   churn     makes, connects, uses and destroys objects of every kind
 *   many N    N QPs
 *   deaf      two processes, of which the receiving one never looks
 *   idle      a target that sleeps until a completion event; with 10 receives in an SRQ of
 *             64, whose limit is 5
 *   fatal WAY a client that expects the end of its device; WAY: event, channel, poll,
 * post, make. Then it opens the device again as soon as there is one
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define DEPTH 16
#define SIZE 9000      /* three packets, the last one odd */
#define ACK_TIMEOUT 17 /* half a second: others may have the cores */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *buf;
};

static void
die(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static bool
input_ended(int timeout_ms)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	return poll(&in, 1, timeout_ms) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct ibv_qp *
qp_make(const struct end *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = srq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = srq != NULL ? 0 : 2 * DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = type};

	return ibv_create_qp(e->pd, &init);
}

static bool
device_open(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(e, 0, sizeof(*e));
	if (list == NULL)
		return false;
	for (unsigned i = 0; list[i] != NULL && e->ctx == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), "rocade0") == 0)
			e->ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return e->ctx != NULL;
}

static void
end_open(struct end *e)
{
	if (!device_open(e))
		die("no rocade0");
	e->buf = calloc(2 * DEPTH, SIZE);
	e->pd = ibv_alloc_pd(e->ctx);
	if (e->buf == NULL || e->pd == NULL)
		die("pd");
	e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * DEPTH, NULL, e->channel, 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, (size_t)2 * DEPTH * SIZE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (e->channel == NULL || e->cq == NULL || e->mr == NULL)
		die("cq or mr");
	e->qp = qp_make(e, IBV_QPT_RC, NULL);
	if (e->qp == NULL)
		die("qp");
}

/* 0 or an errno value. */
static int
end_close(struct end *e)
{
	int rc = ibv_destroy_qp(e->qp);

	rc = rc != 0 ? rc : ibv_dereg_mr(e->mr);
	rc = rc != 0 ? rc : ibv_destroy_cq(e->cq);
	rc = rc != 0 ? rc : ibv_destroy_comp_channel(e->channel);
	rc = rc != 0 ? rc : ibv_dealloc_pd(e->pd);
	rc = rc != 0 ? rc : ibv_close_device(e->ctx);
	free(e->buf);
	return rc;
}

static int
qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

/* To the QP of this number at our own address. */
static int
qp_connect(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = dest,
		.rq_psn = 77,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1}};
	int rc = ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);

	attr.ah_attr.grh.hop_limit = 1;
	if (rc == 0)
		rc = ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = ACK_TIMEOUT;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.sq_psn = 77;
	attr.max_rd_atomic = 1;
	if (rc == 0)
		rc = ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
	return rc;
}

static int
recv_post(struct end *e, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(e->buf + (size_t)slot * SIZE),
		.length = SIZE,
		.lkey = e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(e->qp, &wr, &bad);
}

static int
send_post(struct end *e, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(e->buf + (size_t)slot * SIZE),
		.length = SIZE,
		.lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = slot,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};

	return ibv_post_send(e->qp, &wr, &bad);
}

static void
connect_over(struct end *e, int link)
{
	uint32_t peer;

	if (qp_init(e->qp) != 0)
		die("INIT");
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		if (recv_post(e, i) != 0)
			die("ibv_post_recv");
	}
	if (write(link, &e->qp->qp_num, sizeof(peer)) != sizeof(peer) ||
		read(link, &peer, sizeof(peer)) != sizeof(peer))
		die("the other end");
	if (qp_connect(e->qp, peer) != 0)
		die("RTS");
	/* Both, before anybody sends. */
	if (write(link, "", 1) != 1 || read(link, &peer, 1) != 1)
		die("the other end");
}

/* Message number n is these words. */
static void
fill(uint8_t *buf, uint64_t n)
{
	for (size_t at = 0; at < SIZE; at += 8) {
		uint64_t word = (n * SIZE + at) * UINT64_C(0x9E3779B97F4A7C15) ^ n;

		memcpy(buf + at, &word, 8);
	}
}

static void
completion_check(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "flow: completed with %s\n", ibv_wc_status_str(wc->status));
	_exit(1);
}

/* Sends bursts until the input ends, then says how many messages there were. */
static void
sender_run(struct end *e, int link)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t sent = 0;
	struct ibv_wc wc;

	while (!input_ended(0)) {
		unsigned open = 0;

		for (; open < DEPTH; open++) {
			fill(e->buf + (size_t)open * SIZE, sent++);
			if (send_post(e, open) != 0)
				die("ibv_post_send");
		}
		while (open != 0) {
			int n = ibv_poll_cq(e->cq, 1, &wc);

			if (n > 0)
				completion_check(&wc);
			open -= n > 0;
		}
		nanosleep(&pause, NULL);
	}
	if (write(link, &sent, sizeof(sent)) != sizeof(sent) || read(link, &sent, 1) != 1)
		die("the receiver");
}

static void
receiver_run(struct end *e, int link)
{
	struct pollfd word = {.fd = link, .events = POLLIN};
	uint64_t got = 0, sent = UINT64_MAX, last = now_ns(), gap = 0;
	uint8_t want[SIZE + 8];
	struct ibv_wc wc;

	while (got != sent) {
		int n = ibv_poll_cq(e->cq, 1, &wc);

		if (n == 0) {
			/* Asleep between bursts: the keeper's turn. */
			if (sent == UINT64_MAX && poll(&word, 1, 1) > 0 &&
				read(link, &sent, sizeof(sent)) != sizeof(sent))
				die("the sender is gone");
			continue;
		}
		completion_check(&wc);
		fill(want, got);
		if (wc.byte_len != SIZE ||
			memcmp(want, e->buf + wc.wr_id * SIZE, SIZE) != 0)
			die("not what was sent");
		gap = now_ns() - last > gap ? now_ns() - last : gap;
		last = now_ns();
		got++;
		if (recv_post(e, (unsigned)wc.wr_id) != 0)
			die("ibv_post_recv");
	}
	printf("messages %llu gap_ms %llu\n", (unsigned long long)got,
		(unsigned long long)(gap / 1000000));
	fflush(stdout);
	if (write(link, "", 1) != 1)
		die("the sender");
}

static int
pair(void)
{
	int link[2], status = 1;
	struct end e;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link) != 0)
		die("socketpair");
	child = fork();
	close(link[child == 0]);
	end_open(&e);
	connect_over(&e, link[child != 0]);
	if (child == 0) {
		receiver_run(&e, link[0]);
		_exit(end_close(&e) != 0);
	}
	printf("running\n");
	fflush(stdout);
	sender_run(&e, link[1]);
	waitpid(child, &status, 0);
	return end_close(&e) != 0 || status != 0;
}

static struct ibv_qp *
datagram_qp(const struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp *qp = qp_make(e, IBV_QPT_UD, NULL);

	if (qp == NULL)
		die("qp");
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY) != 0)
		die("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
		die("RTS");
	return qp;
}

/* As many datagrams as go, to a QP of our own address. */
static void
flood(struct end *e, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf, .length = 4000, .lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	if (ibv_query_gid(e->ctx, 1, 0, &to.grh.dgid) != 0)
		die("gid");
	wr.wr.ud.ah = ibv_create_ah(e->pd, &to);
	wr.wr.ud.remote_qpn = dest;
	wr.wr.ud.remote_qkey = 1;
	if (wr.wr.ud.ah == NULL)
		die("ah");
	while (!input_ended(0)) {
		while (ibv_post_send(qp, &wr, &bad) == 0)
			;
		while (ibv_poll_cq(e->cq, 1, &wc) > 0)
			completion_check(&wc);
	}
	(void)ibv_destroy_ah(wr.wr.ud.ah);
}

static int
deaf(void)
{
	struct ibv_qp *qp;
	uint32_t peer = 0;
	struct end e;
	pid_t child;
	int link[2];

	if (pipe(link) != 0)
		die("pipe");
	child = fork();
	end_open(&e);
	qp = datagram_qp(&e);
	if (child == 0) {
		if (write(link[1], &qp->qp_num, sizeof(peer)) != sizeof(peer))
			die("pipe");
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	if (read(link[0], &peer, sizeof(peer)) != sizeof(peer))
		die("the deaf one");
	printf("running\n");
	fflush(stdout);
	flood(&e, qp, peer);
	kill(child, SIGKILL);
	return ibv_destroy_qp(qp) != 0 || end_close(&e) != 0;
}

/* One of everything. NULL or what failed. */
static const char *
one_of_each(struct end *e)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &srq_init);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qps[2] = {
		qp_make(e, IBV_QPT_RC, srq), qp_make(e, IBV_QPT_UD, NULL)};
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 7}};
	struct ibv_qp_attr ud = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};

	if (srq == NULL || mr == NULL || qps[0] == NULL || qps[1] == NULL)
		return "create";
	if (qp_init(qps[0]) != 0 || qp_connect(qps[0], e->qp->qp_num) != 0)
		return "connect";
	if (ibv_modify_qp(qps[1], &ud,
		    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY) != 0 ||
		ibv_attach_mcast(qps[1], &group, 0) != 0)
		return "attach";
	(void)send_post(e, 0);
	if (ibv_detach_mcast(qps[1], &group, 0) != 0 || ibv_destroy_qp(qps[0]) != 0 ||
		ibv_destroy_qp(qps[1]) != 0 || ibv_destroy_srq(srq) != 0 ||
		ibv_dereg_mr(mr) != 0)
		return "destroy";
	return NULL;
}

static int
churn(void)
{
	do {
		struct end e;
		const char *failed;

		end_open(&e);
		if (qp_init(e.qp) != 0 || qp_connect(e.qp, e.qp->qp_num) != 0)
			die("connect");
		failed = one_of_each(&e);
		if (failed != NULL)
			die(failed);
		if (end_close(&e) != 0)
			die("close");
	} while (!input_ended(0));
	return 0;
}

static int
many(unsigned want)
{
	struct end e;
	unsigned made = 0;

	end_open(&e);
	while (made < want) {
		struct ibv_qp *qp = qp_make(&e, IBV_QPT_RC, NULL);

		if (qp == NULL)
			break;
		if (qp_init(qp) != 0 || qp_connect(qp, e.qp->qp_num) != 0)
			die("connect");
		made++;
	}
	printf("made %u\n", made);
	fflush(stdout);
	while (!input_ended(-1))
		;
	return 0; /* all of them left to the end of the process */
}

/* An SRQ for others to look at. */
static struct ibv_srq *
srq_show(const struct end *e)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	struct ibv_srq_attr limit = {.srq_limit = 5};
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};

	if (srq == NULL)
		die("srq");
	for (unsigned i = 0; i < 10; i++) {
		if (ibv_post_srq_recv(srq, &wr, &bad) != 0)
			die("ibv_post_srq_recv");
	}
	if (ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) != 0)
		die("ibv_modify_srq");
	return srq;
}

static int
idle(void)
{
	struct ibv_srq *srq;
	struct end e;

	end_open(&e);
	srq = srq_show(&e);
	if (qp_init(e.qp) != 0 || qp_connect(e.qp, e.qp->qp_num) != 0)
		die("connect");
	for (unsigned i = 0; i < DEPTH; i++)
		(void)recv_post(&e, i);
	if (ibv_req_notify_cq(e.cq, 0) != 0)
		die("ibv_req_notify_cq");
	printf("running\n");
	fflush(stdout);
	while (!input_ended(-1))
		;
	return ibv_destroy_srq(srq) != 0 || end_close(&e) != 0;
}

/* The ways to be when the device ends; each returns when it has noticed. */
static void
fatal_wait(struct end *e, const char *way)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	if (strcmp(way, "channel") == 0) {
		if (ibv_get_cq_event(e->channel, &cq, &arg) != 0)
			die("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	} else if (strcmp(way, "poll") == 0) {
		while (ibv_poll_cq(e->cq, 1, &wc) == 0)
			;
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			die("not flushed");
	} else if (strcmp(way, "post") == 0) {
		/* To a QP of our own that answers, as fast as it goes. */
		do {
			(void)send_post(e, 0);
			while (ibv_poll_cq(e->cq, 1, &wc) == 0)
				;
			if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV)
				(void)recv_post(e, (unsigned)wc.wr_id);
		} while (wc.status == IBV_WC_SUCCESS);
		if (wc.status != IBV_WC_WR_FLUSH_ERR)
			die("not flushed");
	} else if (strcmp(way, "make") == 0) {
		struct ibv_qp *qp;

		while ((qp = qp_make(e, IBV_QPT_RC, NULL)) != NULL &&
			ibv_destroy_qp(qp) == 0)
			;
		if (qp != NULL)
			die("a QP that was made is not destroyed");
	}
}

static int
fatal(const char *way)
{
	struct ibv_async_event event;
	struct end e;
	struct ibv_wc wc;

	end_open(&e);
	if (qp_init(e.qp) != 0 || qp_connect(e.qp, e.qp->qp_num) != 0)
		die("connect");
	for (unsigned i = 0; i < DEPTH; i++)
		(void)recv_post(&e, i);
	if (ibv_req_notify_cq(e.cq, 0) != 0)
		die("ibv_req_notify_cq");
	printf("running\n");
	fflush(stdout);
	fatal_wait(&e, way);
	do {
		if (ibv_get_async_event(e.ctx, &event) != 0)
			die("ibv_get_async_event");
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	while (ibv_poll_cq(e.cq, 1, &wc) > 0)
		;
	if (recv_post(&e, 0) == 0 &&
		(ibv_poll_cq(e.cq, 1, &wc) != 1 || wc.status != IBV_WC_WR_FLUSH_ERR))
		die("a late receive is not flushed");
	if (end_close(&e) != 0)
		die("close");
	printf("fatal\n");
	fflush(stdout);
	while (!device_open(&e))
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	printf("open again\n");
	return ibv_close_device(e.ctx) != 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "pair") == 0)
		return pair();
	if (strcmp(what, "deaf") == 0)
		return deaf();
	if (strcmp(what, "churn") == 0)
		return churn();
	if (strcmp(what, "idle") == 0)
		return idle();
	if (strcmp(what, "many") == 0 && argc > 2)
		return many((unsigned)atoi(argv[2]));
	if (strcmp(what, "fatal") == 0 && argc > 2)
		return fatal(argv[2]);
	fprintf(stderr, "flow: pair, deaf, churn, idle, many N, fatal WAY\n");
	return 2;
}
