/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain verbs program. Its first argument selects a mode. It runs until its standard
 * input ends. test/e2e/bad_clients.py kills some of these processes and checks the
 * others.
 *
 *   pair      two processes; one verifies all messages of the other
 *   churn     creates, connects, uses and destroys objects of every kind
 *   many N    N QPs
 *   hosts N   N QPs, each to another host, which does not answer: 192.0.2.100, and so on.
 *             The first has a SEND of three packets
 *   deaf      two processes; the receiver is stopped and never polls
 *   idle      a target that sleeps until a completion event; it has an SRQ of 64 with 10
 *             receives and the limit 5
 *   fatal WAY expects the end of its device while it waits in WAY: event, channel, poll,
 *             post or make. Then opens the device again as soon as it exists */
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

#include "await.h"
#include "flow_end.h"

static void
connect_over(struct end *e, int link)
{
	uint32_t peer;

	if (qp_init(e->qp) != 0)
		die("ibv_modify_qp to INIT");
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		if (recv_post(e, i) != 0)
			die("ibv_post_recv");
	}
	if (write(link, &e->qp->qp_num, sizeof(peer)) != sizeof(peer) ||
		read(link, &peer, sizeof(peer)) != sizeof(peer))
		die("exchange with the other process");
	if (qp_connect(e->qp, peer) != 0)
		die("ibv_modify_qp to RTR or RTS");
	/* Both ends have posted receives and are connected before either sends. */
	if (write(link, "", 1) != 1 || read(link, &peer, 1) != 1)
		die("exchange with the other process");
}

static void
completion_check(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "flow: completed with %s\n", ibv_wc_status_str(wc->status));
	_exit(1);
}

/* Sends bursts until the input ends, then tells the receiver the number of messages. */
static void
sender_run(struct end *e, int link)
{
	uint64_t sent = 0;
	struct ibv_wc wc;

	while (!input_ended(0)) {
		unsigned open = 0;

		for (; open < DEPTH; open++) {
			message_fill(e->buf + (size_t)open * SIZE, sent++);
			if (send_post(e, open) != 0)
				die("ibv_post_send");
		}
		while (open != 0) {
			int n = ibv_poll_cq(e->cq, 1, &wc);

			if (n > 0)
				completion_check(&wc);
			open -= n > 0;
		}
		others_run_us(1000);
	}
	if (write(link, &sent, sizeof(sent)) != sizeof(sent) || read(link, &sent, 1) != 1)
		die("sending the message count to the receiver");
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
			/* Sleep between bursts, while the progress thread polls. */
			if (sent == UINT64_MAX && others_run_until(&word, 1, 1) > 0 &&
				read(link, &sent, sizeof(sent)) != sizeof(sent))
				die("the sender has ended");
			continue;
		}
		completion_check(&wc);
		message_fill(want, got);
		if (wc.byte_len != SIZE ||
			memcmp(want, e->buf + wc.wr_id * SIZE, SIZE) != 0)
			die("received data differs from the sent");
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
		die("reply to the sender");
}

static int
mode_pair(void)
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

/* Sends datagrams as fast as possible to a QP at our own address. */
static void
datagrams_flood(struct end *e, struct ibv_qp *qp, uint32_t dest)
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
		die("ibv_query_gid");
	wr.wr.ud.ah = ibv_create_ah(e->pd, &to);
	wr.wr.ud.remote_qpn = dest;
	wr.wr.ud.remote_qkey = 1;
	if (wr.wr.ud.ah == NULL)
		die("ibv_create_ah");
	while (!input_ended(0)) {
		while (ibv_post_send(qp, &wr, &bad) == 0)
			;
		while (ibv_poll_cq(e->cq, 1, &wc) > 0)
			completion_check(&wc);
	}
	(void)ibv_destroy_ah(wr.wr.ud.ah);
}

static int
mode_deaf(void)
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
		die("QPN of the stopped receiver");
	printf("running\n");
	fflush(stdout);
	datagrams_flood(&e, qp, peer);
	kill(child, SIGKILL);
	return ibv_destroy_qp(qp) != 0 || end_close(&e) != 0;
}

/* Creates, uses and destroys one object of each kind. Returns NULL, or the failed
 * step. */
static const char *
objects_cycle(struct end *e)
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
mode_churn(void)
{
	do {
		struct end e;
		const char *failed;

		end_open(&e);
		if (qp_init(e.qp) != 0 || qp_connect(e.qp, e.qp->qp_num) != 0)
			die("qp_connect");
		failed = objects_cycle(&e);
		if (failed != NULL)
			die(failed);
		if (end_close(&e) != 0)
			die("end_close");
	} while (!input_ended(0));
	return 0;
}

static int
mode_many(unsigned want)
{
	struct end e;
	unsigned made = 0;

	end_open(&e);
	while (made < want) {
		struct ibv_qp *qp = qp_make(&e, IBV_QPT_RC, NULL);

		if (qp == NULL)
			break;
		if (qp_init(qp) != 0 || qp_connect(qp, e.qp->qp_num) != 0)
			die("qp_connect");
		made++;
	}
	printf("made %u\n", made);
	fflush(stdout);
	while (!input_ended(-1))
		;
	return 0; /* the end of the process frees all QPs */
}

static int
mode_hosts(unsigned want)
{
	struct end e;

	end_open(&e);
	for (unsigned i = 0; i < want; i++) {
		union ibv_gid gid = {
			.raw = {[10] = 0xff, 0xff, 192, 0, 2, (uint8_t)(100 + i)}};
		struct ibv_qp *qp = i == 0 ? e.qp : qp_make(&e, IBV_QPT_RC, NULL);

		if (qp == NULL || qp_init(qp) != 0 || qp_connect_to(qp, &gid, 7) != 0)
			die("qp_connect_to");
	}
	if (send_post(&e, 0) != 0)
		die("ibv_post_send");
	printf("running\n");
	fflush(stdout);
	while (!input_ended(-1))
		;
	return 0;
}

/* Creates an SRQ whose state rocade-status shows. */
static struct ibv_srq *
srq_show(const struct end *e)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	struct ibv_srq_attr limit = {.srq_limit = 5};
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};

	if (srq == NULL)
		die("ibv_create_srq");
	for (unsigned i = 0; i < 10; i++) {
		if (ibv_post_srq_recv(srq, &wr, &bad) != 0)
			die("ibv_post_srq_recv");
	}
	if (ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) != 0)
		die("ibv_modify_srq");
	return srq;
}

static int
mode_idle(void)
{
	struct ibv_srq *srq;
	struct end e;

	end_open(&e);
	srq = srq_show(&e);
	end_run(&e);
	while (!input_ended(-1))
		;
	return ibv_destroy_srq(srq) != 0 || end_close(&e) != 0;
}

/* Waits in the given way until the device ends. */
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
		/* Send to our own QP, which posts its receives again, as fast as
		 * possible. */
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
			die("ibv_destroy_qp");
	}
}

static int
mode_fatal(const char *way)
{
	struct ibv_async_event event;
	struct end e;
	struct ibv_wc wc;

	end_open(&e);
	end_run(&e);
	fatal_wait(&e, way);
	do {
		if (ibv_get_async_event(e.ctx, &event) != 0)
			die("ibv_get_async_event");
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	while (ibv_poll_cq(e.cq, 1, &wc) > 0)
		;
	/* The thread that holds the engine lock flushes it: perhaps the progress
	 * thread. */
	if (recv_post(&e, 0) == 0) {
		int n;

		while ((n = ibv_poll_cq(e.cq, 1, &wc)) == 0)
			;
		if (n != 1 || wc.status != IBV_WC_WR_FLUSH_ERR)
			die("a late receive is not flushed");
	}
	if (end_close(&e) != 0)
		die("end_close");
	printf("fatal\n");
	fflush(stdout);
	while (!device_open(&e))
		others_run_us(20000);
	printf("open again\n");
	return ibv_close_device(e.ctx) != 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "pair") == 0)
		return mode_pair();
	if (strcmp(what, "deaf") == 0)
		return mode_deaf();
	if (strcmp(what, "churn") == 0)
		return mode_churn();
	if (strcmp(what, "idle") == 0)
		return mode_idle();
	if (strcmp(what, "many") == 0 && argc > 2)
		return mode_many((unsigned)atoi(argv[2]));
	if (strcmp(what, "hosts") == 0 && argc > 2)
		return mode_hosts((unsigned)atoi(argv[2]));
	if (strcmp(what, "fatal") == 0 && argc > 2)
		return mode_fatal(argv[2]);
	fprintf(stderr,
		"usage: flow pair | deaf | churn | idle | many N | hosts N | fatal WAY\n");
	return 2;
}
