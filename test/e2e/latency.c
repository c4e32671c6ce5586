/* SPDX-License-Identifier: BSD-3-Clause */
/* A correct client of the daemon that measures how long it has to wait. It runs until its
 * standard input ends. For each line there it prints, as JSON, what it has measured since
 * the last line. test/e2e/attacks.py compares that with and without attacks of others.
 *
 *   pair SOCKET PID...        round trips over RC and UD to another process, a client of
 *                             the daemon at SOCKET; after each pair of them a datagram to
 *                             a multicast group
 *   make PID...               opens the device, creates a QP and connects it with itself,
 *                             sends a message over it, destroys and closes all
 *   cm SOCKET ADDRESS PID...  connects by RDMA-CM, as a client of the daemon at SOCKET,
 *                             to another process at ADDRESS, and disconnects
 *   core N                    sleeps on this core, to see how late it is woken
 *   busy                      sends to another process of its own as fast as it can
 *
 * PID: the daemons. Time for which these, this process or the other process wait for a
 * core does not count: no daemon can help that. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "await.h"
#include "flow_end.h"
#include "latency.h"

#define SOCKET_ENV "ROCADE_SOCKET"
#define GROUP "\xff\x0e\0\0\0\0\0\0\0\0\xff\xff\xef\x01\x01\x01"
#define WAKE_MS 1000 /* at the limit, while nothing comes */
#define INTERVAL_US 1000
#define CM_PORT "7471"
#define CM_SLOW_PORT "7472" /* whose connections it does not accept */

#define GRH 40 /* bytes before a received datagram */

/* One of the two processes of `pair` or `busy`. */
struct party {
	struct end end;
	struct ibv_qp *ud;
	struct ibv_ah *peer, *group;
	uint32_t ud_dest;
	uint32_t sent[2]; /* over RC and UD; every fourth request is signaled */
};

/* The address and the QPNs of a party, sent to the other one. */
struct name {
	union ibv_gid gid;
	uint32_t rc, ud;
};

/* The slots from 0 on are for RC, those from DEPTH on for UD. The first half of each is
 * for receives, the second half for sends. */
static uint8_t *
slot_at(struct party *p, uint64_t slot)
{
	return p->end.buf + slot * SIZE;
}

static void
receive(struct party *p, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)slot_at(p, slot),
		.length = SIZE,
		.lkey = p->end.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(slot >= DEPTH ? p->ud : p->end.qp, &wr, &bad) != 0)
		die("ibv_post_recv");
}

static void
message_send(struct party *p, bool ud, struct ibv_ah *to, uint32_t dest, uint64_t number)
{
	uint32_t turn = p->sent[ud]++;
	uint8_t *at = slot_at(p, (ud ? DEPTH : 0) + DEPTH / 2 + turn % (DEPTH / 2));
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = sizeof(number), .lkey = p->end.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = turn % 4 == 0 ? IBV_SEND_SIGNALED : 0};

	memcpy(at, &number, sizeof(number));
	if (ud) {
		wr.wr.ud.ah = to;
		wr.wr.ud.remote_qpn = dest;
		wr.wr.ud.remote_qkey = 1;
	}
	if (ibv_post_send(ud ? p->ud : p->end.qp, &wr, &bad) != 0)
		die("ibv_post_send");
}

/* Waits for a message, and posts its receive again. Returns false when the limit is reached, or when
 * the other end of the socket `other` is closed; other -1: there is no socket. */
static bool
message_wait(struct party *p, int other, bool *ud, uint64_t *number)
{
	struct await a = {.pauses = 0};
	bool goes_on = true;
	struct pollfd fds[] = {{.fd = p->end.channel->fd, .events = POLLIN},
		{.fd = other, .events = POLLIN}};
	bool armed = false;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	for (;;) {
		int n = ibv_poll_cq(p->end.cq, 1, &wc);

		if (n != 0 && (n < 0 || wc.status != IBV_WC_SUCCESS))
			die(n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
		if (n != 0 && wc.opcode == IBV_WC_RECV) {
			*ud = wc.wr_id >= DEPTH;
			memcpy(number, slot_at(p, wc.wr_id) + (*ud ? GRH : 0),
				sizeof(*number));
			receive(p, (unsigned)wc.wr_id);
			return true;
		}
		if (n != 0)
			continue;
		if (!armed) {
			armed = true;
			if (ibv_req_notify_cq(p->end.cq, 0) != 0)
				die("ibv_req_notify_cq");
			continue;
		}
		if (!goes_on)
			return false;
		goes_on = await_goes_on(&a);
		if (others_run_until(fds, 2, goes_on ? WAKE_MS : 0) > 0 &&
			fds[1].revents != 0)
			return false;
		if (fds[0].revents != 0) {
			if (ibv_get_cq_event(p->end.channel, &cq, &arg) != 0)
				die("ibv_get_cq_event");
			ibv_ack_cq_events(cq, 1);
			armed = false;
		}
	}
}

static struct ibv_ah *
address(struct party *p, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(p->end.pd, &attr);

	if (ah == NULL)
		die("ibv_create_ah");
	return ah;
}

/* Opens the device and connects with the other party. link: a socket to it. */
static void
party_open(struct party *p, int link)
{
	struct name own, other;
	union ibv_gid group;

	memcpy(group.raw, GROUP, sizeof(group.raw));
	memset(p, 0, sizeof(*p));
	end_open(&p->end);
	p->ud = datagram_qp(&p->end);
	own = (struct name){.rc = p->end.qp->qp_num, .ud = p->ud->qp_num};
	if (ibv_query_gid(p->end.ctx, 1, 0, &own.gid) != 0 || qp_init(p->end.qp) != 0)
		die("ibv_query_gid or ibv_modify_qp");
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		if (i % DEPTH < DEPTH / 2)
			receive(p, i);
	}
	if (write(link, &own, sizeof(own)) != sizeof(own) ||
		read(link, &other, sizeof(other)) != sizeof(other) ||
		qp_connect_to(p->end.qp, &other.gid, other.rc) != 0 ||
		write(link, "", 1) != 1 || read(link, &own, 1) != 1)
		die("connecting the parties");
	p->peer = address(p, &other.gid);
	p->group = address(p, &group);
	p->ud_dest = other.ud;
}

static int
party_close(struct party *p)
{
	if (ibv_destroy_ah(p->peer) != 0 || ibv_destroy_ah(p->group) != 0 ||
		ibv_destroy_qp(p->ud) != 0)
		die("ibv_destroy_ah or ibv_destroy_qp");
	return end_close(&p->end);
}

/* Answers each message until the link ends. */
static void
answer(struct party *p, int link)
{
	uint64_t number;
	bool ud;

	while (message_wait(p, link, &ud, &number))
		message_send(p, ud, p->peer, p->ud_dest, number);
}

static void
round_trip(struct party *p, bool ud, uint64_t number, struct series *s)
{
	struct moment start = moment_now();
	uint64_t got;
	bool over_ud;

	message_send(p, ud, p->peer, p->ud_dest, number);
	do {
		if (!message_wait(p, -1, &over_ud, &got)) {
			if (!ud)
				die("no answer over RC");
			s->lost++;
			break;
		}
		/* A datagram may be the late answer to one that has counted as lost. */
		if (!over_ud && (ud || got != number))
			die("another message over RC than expected");
	} while (over_ud != ud || got != number);
	series_add(s, &start);
}

/* Starts a process that is a client of the daemon at `socket`, NULL: of the same daemon.
 * link: a socket pair, [0] for the new process. Returns 0 in the new process. */
static pid_t
other_start(const char *socket, int link[2])
{
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link) != 0 || (child = fork()) < 0)
		die("socketpair or fork");
	close(link[child == 0]);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		if (socket != NULL)
			setenv(SOCKET_ENV, socket, 1);
		close(STDIN_FILENO);
	}
	return child;
}

static void
begin(void)
{
	printf("running\n");
	fflush(stdout);
}

static int
mode_pair(const char *socket)
{
	struct series series[2];
	uint64_t number = 0;
	struct party p;
	int link[2];
	pid_t child = other_start(socket, link);

	party_open(&p, link[child != 0]);
	if (child == 0) {
		answer(&p, link[0]);
		_exit(0);
	}
	waits_add(child);
	series_init(&series[0], "rc");
	series_init(&series[1], "ud");
	waits_add(getpid());
	begin();
	while (rows_serve(series, 2, INTERVAL_US)) {
		round_trip(&p, false, ++number, &series[0]);
		round_trip(&p, true, ++number, &series[1]);
		message_send(&p, true, p.group, 0xffffff, number);
	}
	close(link[1]);
	return party_close(&p);
}

static void
make_once(void)
{
	struct ibv_wc wc;
	struct end e;
	unsigned left = 2;

	end_open(&e);
	if (qp_init(e.qp) != 0 || qp_connect(e.qp, e.qp->qp_num) != 0)
		die("connecting the QP to itself");
	if (recv_post(&e, 0) != 0 || send_post(&e, 1) != 0)
		die("ibv_post_send or ibv_post_recv");
	while (left != 0) {
		int n = ibv_poll_cq(e.cq, 1, &wc);

		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc.status));
		left -= n > 0;
		if (n == 0)
			sched_yield();
	}
	if (end_close(&e) != 0)
		die("end_close");
}

static int
mode_make(void)
{
	struct series series;

	series_init(&series, "make");
	waits_add(getpid());
	begin();
	while (rows_serve(&series, 1, 50 * INTERVAL_US)) {
		struct moment start = moment_now();

		make_once();
		series_add(&series, &start);
	}
	return 0;
}

static struct rdma_cm_id *
cm_id_make(const char *node, const char *port, bool passive)
{
	struct rdma_addrinfo *info, hints = {.ai_port_space = RDMA_PS_TCP,
					    .ai_flags = passive ? RAI_PASSIVE : 0};
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 4,
						.max_recv_wr = 4,
						.max_send_sge = 1,
						.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(node, port, &hints, &info) != 0)
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, &init) != 0)
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

/* Accepts connections one after the other, each until its peer ends it. */
static void
cm_accept(const char *node, int link)
{
	struct rdma_cm_id *listener = cm_id_make(node, CM_PORT, true), *id;
	struct rdma_cm_id *slow = cm_id_make(node, CM_SLOW_PORT, true);
	struct rdma_cm_event *event;

	if (rdma_listen(listener, 16) != 0 || rdma_listen(slow, 1024) != 0)
		die("rdma_listen");
	if (write(link, "", 1) != 1)
		die("write");
	while (rdma_get_request(listener, &id) == 0) {
		/* A connection whose peer has given up fails, and ends here. If the RTU was lost, the
		 * DREQ of the peer comes first: the event for which rdma_accept() has waited is
		 * DISCONNECTED then, and there is no other one to wait for. */
		if (rdma_accept(id, NULL) == 0 &&
			id->event->event == RDMA_CM_EVENT_ESTABLISHED &&
			rdma_get_cm_event(id->channel, &event) == 0) {
			rdma_ack_cm_event(event);
		}
		rdma_destroy_ep(id);
	}
	die("rdma_get_request");
}

static int
mode_cm(const char *socket, const char *node)
{
	struct series series;
	int link[2];
	char byte;
	pid_t child = other_start(NULL, link);

	if (child == 0)
		cm_accept(node, link[0]);
	if (read(link[1], &byte, 1) != 1)
		die("the other process has ended");
	setenv(SOCKET_ENV, socket, 1);
	waits_add(child);
	series_init(&series, "cm");
	waits_add(getpid());
	begin();
	while (rows_serve(&series, 1, 50 * INTERVAL_US)) {
		struct moment start = moment_now();
		struct rdma_cm_id *id = cm_id_make(node, CM_PORT, false);

		if (rdma_connect(id, NULL) != 0)
			die("rdma_connect");
		if (rdma_disconnect(id) != 0)
			die("rdma_disconnect");
		rdma_destroy_ep(id);
		series_add(&series, &start);
	}
	kill(child, SIGKILL);
	return 0;
}

/* Sleeps for a millisecond at a time. It is woken late if the machine has stopped the
 * core, or if the kernel was busy on the core. */
static int
mode_core(unsigned core)
{
	struct series series;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("sched_setaffinity");
	waits_add(getpid());
	series_init(&series, "core");
	begin();
	do {
		struct moment start = moment_now();

		others_run_us(1000);
		series_add(&series, &start);
	} while (rows_serve(&series, 1, 0));
	return 0;
}

/* As plain a program as it can be: it keeps eight messages of 9000 bytes on their way. */
static int
mode_busy(void)
{
	struct party p;
	struct ibv_wc wc;
	int link[2];
	pid_t child = other_start(NULL, link);
	unsigned open = 0;

	party_open(&p, link[child != 0]);
	while (child == 0 || !input_ended(0)) {
		int n;

		for (; child != 0 && open < DEPTH / 2; open++) {
			if (send_post(&p.end, DEPTH - 1) != 0)
				die("ibv_post_send");
		}
		while ((n = ibv_poll_cq(p.end.cq, 1, &wc)) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				die(ibv_wc_status_str(wc.status));
			if (wc.opcode == IBV_WC_RECV)
				(void)recv_post(&p.end, (unsigned)wc.wr_id);
			else
				open--;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int first = strcmp(mode, "pair") == 0 ? 3 : strcmp(mode, "make") == 0 ? 2 : 4;

	for (int i = first; i < argc; i++)
		waits_add(atoi(argv[i]));
	if (strcmp(mode, "pair") == 0 && argc > 2)
		return mode_pair(argv[2]);
	if (strcmp(mode, "make") == 0)
		return mode_make();
	if (strcmp(mode, "cm") == 0 && argc > 3)
		return mode_cm(argv[2], argv[3]);
	if (strcmp(mode, "core") == 0 && argc > 2)
		return mode_core((unsigned)atoi(argv[2]));
	if (strcmp(mode, "busy") == 0)
		return mode_busy();
	fprintf(stderr,
		"usage: latency pair SOCKET PID... | make PID... | cm SOCKET ADDRESS PID... | core N | "
		"busy\n");
	return 2;
}
