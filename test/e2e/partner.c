/* SPDX-License-Identifier: BSD-3-Clause */
/* Two correct processes that exchange messages over RC and verify every byte: the first sends, and
 * the second, its friend, returns what it gets. test/e2e/partners.py gives the first a hostile
 * partner, or stops or kills one of the two. The first prints "running", the pid of its friend,
 * and the QPNs of: its connected QP, a QP that is not connected, a UD QP that is in a multicast
 * group, and its friend's QP. It does what the lines of its input say, and ends at their end:
 *
 *   meet QPN...  connects a new QP with each of MEETS QPNs, and receives. Prints "met" and the new
 *                QPNs
 *   send         sends messages by the new QPs. Prints "sending"
 *   count        prints "count", and how many messages came back, came from the QPs that were met,
 *                and came to the QPs that have no peer
 *   part         destroys the new QPs. Prints "parted"
 *
 * If the connection with the friend fails it prints "failed", how many milliseconds after the last
 * completion, and the status, and exits with 3. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "flow_end.h"

/* The code of the ACK timeout; without it 537 ms, with which all tries take four seconds: an end may be without a core
 * for as long. */
#define TIMEOUT_ENV "ROCADE_TEST_TIMEOUT"
#define TIMEOUT 17
#define WINDOW 8          /* messages under way */
#define LOOK 64           /* polls between two looks at the input */
#define IDLE_NS 100000000 /* after this time without a completion it sends more */
#define EXIT_FAILED 3
#define MEETS 8 /* together they can send more packets than a pair has slots */
#define MEET_SENDS DEPTH

struct friendly {
	struct end end;
	uint64_t sent, got;
	uint64_t last_ns; /* the last completion */
};

/* The QPs of the first process beside the connection with its friend, each with a CQ and a
 * buffer of its own. */
struct victim {
	struct end met[MEETS]; /* with one CQ and one buffer */
	bool meets;
	bool meet_sends; /* it sends by them */
	bool met_failed;
	bool met_first_round;
	unsigned met_sends; /* under way */
	unsigned met_left;  /* still to be sent in this round */
	uint64_t met_got;
	struct end stray; /* UD */
	struct ibv_qp *unconnected;
	uint64_t strays;
};

/* Initialises `more` as `e`, but with a CQ, a QP and a buffer of its own. */
static void
end_add(struct end *more, const struct end *e, enum ibv_qp_type type)
{
	*more = *e;
	more->buf = calloc(2 * DEPTH, SIZE);
	more->cq = ibv_create_cq(e->ctx, 4 * DEPTH * MEETS, NULL, NULL, 0);
	if (more->buf == NULL || more->cq == NULL)
		die("calloc or ibv_create_cq");
	more->mr = ibv_reg_mr(
		e->pd, more->buf, (size_t)2 * DEPTH * SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (more->mr == NULL)
		die("ibv_reg_mr");
	more->qp = type == IBV_QPT_UD ? datagram_qp(more) : qp_make(more, type, NULL);
	if (more->qp == NULL)
		die("ibv_create_qp");
}

static void
end_remove(struct end *more)
{
	if (ibv_destroy_qp(more->qp) != 0 || ibv_dereg_mr(more->mr) != 0 ||
		ibv_destroy_cq(more->cq) != 0)
		die("ibv_destroy_qp, ibv_dereg_mr or ibv_destroy_cq");
	free(more->buf);
}

static void
connected(struct ibv_qp *qp, uint32_t dest)
{
	const char *code = getenv(TIMEOUT_ENV);
	union ibv_gid own;

	if (ibv_query_gid(qp->context, 1, 0, &own) != 0 ||
		qp_connect_timeout(qp, &own, dest,
			code != NULL ? (uint8_t)atoi(code) : TIMEOUT) != 0)
		die("ibv_modify_qp to RTR or RTS");
}

/* Connects with the other process. Returns its QPN. */
static uint32_t
friend_connect(struct end *e, int link)
{
	uint32_t peer;
	char byte;

	if (qp_init(e->qp) != 0)
		die("ibv_modify_qp to INIT");
	for (unsigned i = 0; i < DEPTH; i++) {
		if (recv_post(e, i) != 0)
			die("ibv_post_recv");
	}
	if (write(link, &e->qp->qp_num, sizeof(peer)) != sizeof(peer) ||
		read(link, &peer, sizeof(peer)) != sizeof(peer))
		die("exchange with the other process");
	connected(e->qp, peer);
	if (write(link, "", 1) != 1 || read(link, &byte, 1) != 1)
		die("exchange with the other process");
	return peer;
}

/* Sends message n. The first half of the slots is for receives. */
static void
message_send(struct friendly *f, uint64_t n)
{
	unsigned slot = DEPTH + (unsigned)(f->sent % DEPTH);

	message_fill(f->end.buf + (size_t)slot * SIZE, n);
	if (send_post(&f->end, slot) != 0)
		die("ibv_post_send");
	f->sent++;
}

/* Takes a completion. Returns whether a message came. */
static bool
message_take(struct friendly *f)
{
	uint8_t want[SIZE];
	struct ibv_wc wc;
	int n = ibv_poll_cq(f->end.cq, 1, &wc);

	if (n < 0)
		die("ibv_poll_cq");
	if (n == 0)
		return false;
	if (wc.status != IBV_WC_SUCCESS) {
		printf("failed %llu %s\n",
			(unsigned long long)((now_ns() - f->last_ns) / 1000000),
			ibv_wc_status_str(wc.status));
		fflush(stdout);
		_exit(EXIT_FAILED);
	}
	f->last_ns = now_ns();
	if (wc.opcode != IBV_WC_RECV)
		return false;
	message_fill(want, f->got++);
	if (wc.byte_len != SIZE || memcmp(want, f->end.buf + wc.wr_id * SIZE, SIZE) != 0)
		die("received data differs from the sent");
	if (recv_post(&f->end, (unsigned)wc.wr_id) != 0)
		die("ibv_post_recv");
	return true;
}

/* Returns whether the other end of the socket is closed. */
static bool
link_ended(int link)
{
	struct pollfd in = {.fd = link, .events = POLLIN};

	return poll(&in, 1, 0) != 0;
}

static int
friend_run(struct friendly *f, int link)
{
	unsigned in_vain = 0;

	friend_connect(&f->end, link);
	f->last_ns = now_ns();
	for (;;) {
		if (message_take(f)) {
			message_send(f, f->got - 1);
			in_vain = 0;
		} else if (++in_vain % LOOK == 0 && link_ended(link)) {
			return end_close(&f->end);
		}
	}
}

/* Opens QPs that have no peer. */
static void
strays_open(struct victim *v, const struct end *e)
{
	static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}};

	end_add(&v->stray, e, IBV_QPT_UD);
	v->unconnected = qp_make(&v->stray, IBV_QPT_RC, NULL);
	if (v->unconnected == NULL || qp_init(v->unconnected) != 0 ||
		ibv_attach_mcast(v->stray.qp, &group, 0) != 0)
		die("ibv_create_qp, ibv_modify_qp or ibv_attach_mcast");
	for (unsigned i = 0; i < DEPTH; i++) {
		struct end other = v->stray;

		other.qp = v->unconnected;
		if (recv_post(&v->stray, i) != 0 || recv_post(&other, DEPTH + i) != 0)
			die("ibv_post_recv");
	}
}

static void
strays_close(struct victim *v)
{
	static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}};

	if (ibv_detach_mcast(v->stray.qp, &group, 0) != 0 ||
		ibv_destroy_qp(v->unconnected) != 0)
		die("ibv_detach_mcast or ibv_destroy_qp");
	end_remove(&v->stray);
}

/* Creates a QP of those that are to be met. */
static void
meet_prepare(struct end *met)
{
	if (qp_init(met->qp) != 0)
		die("ibv_modify_qp to INIT");
	for (unsigned i = 0; i < DEPTH; i++) {
		if (recv_post(met, i) != 0)
			die("ibv_post_recv");
	}
}

static void
meet(struct victim *v, const struct end *e, const unsigned qpns[MEETS])
{
	end_add(&v->met[0], e, IBV_QPT_RC);
	printf("met");
	for (unsigned i = 0; i < MEETS; i++) {
		if (i != 0) {
			v->met[i] = v->met[0];
			v->met[i].qp = qp_make(&v->met[0], IBV_QPT_RC, NULL);
		}
		if (v->met[i].qp == NULL)
			die("ibv_create_qp");
		meet_prepare(&v->met[i]);
		connected(v->met[i].qp, qpns[i]);
		printf(" %u", v->met[i].qp->qp_num);
	}
	printf("\n");
	v->meets = v->met_first_round = true;
	v->met_failed = v->meet_sends = false;
	v->met_sends = v->met_left = 0;
	v->met_got = 0;
}

static void
part(struct victim *v)
{
	for (unsigned i = 1; i < MEETS; i++) {
		if (ibv_destroy_qp(v->met[i].qp) != 0)
			die("ibv_destroy_qp");
	}
	end_remove(&v->met[0]);
	v->meets = false;
}

/* Takes a completion of a QP that was met. A QP whose request failed sends no more. */
static void
met_take(struct victim *v, const struct ibv_wc *wc)
{
	struct end *from = &v->met[0];

	for (unsigned i = 0; i < MEETS; i++) {
		if (v->met[i].qp->qp_num == wc->qp_num)
			from = &v->met[i];
	}
	v->met_failed |= wc->status != IBV_WC_SUCCESS;
	if (wc->wr_id >= DEPTH) {
		v->met_sends--;
	} else if (wc->status == IBV_WC_SUCCESS) {
		v->met_got++;
		(void)recv_post(from, (unsigned)wc->wr_id);
	}
}

/* Sends to the QPs that were met and receives from them. They need not answer: then these QPs
 * fail. */
static void
met_serve(struct victim *v)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(v->stray.cq, 1, &wc) > 0)
		v->strays++;
	while (v->meets && ibv_poll_cq(v->met[0].cq, 1, &wc) > 0)
		met_take(v, &wc);
	if (!v->meets || !v->meet_sends || v->met_failed)
		return;
	/* In rounds, so that each QP has room. The first round is posted at once: a QP whose ACK timeout
	 * has expired sends nothing new, and then the ring of a partner that takes nothing would never be
	 * full. The others are posted one at a time, so that a partner may fall asleep between two. */
	if (v->met_sends == 0 && v->met_left == 0)
		v->met_left = MEETS * MEET_SENDS;
	for (unsigned most = v->met_first_round ? v->met_left : 1;
		v->met_left != 0 && most != 0; most--) {
		v->met_left--;
		v->met_sends++;
		if (send_post(&v->met[v->met_left % MEETS],
			    DEPTH + v->met_left / MEETS) != 0)
			die("ibv_post_send");
	}
	v->met_first_round = false;
}

static void
command_do(struct victim *v, struct friendly *f, const char *line)
{
	unsigned q[MEETS];

	if (sscanf(line, "meet %u %u %u %u %u %u %u %u", &q[0], &q[1], &q[2], &q[3],
		    &q[4], &q[5], &q[6], &q[7]) == MEETS &&
		!v->meets) {
		meet(v, &f->end, q);
	} else if (strcmp(line, "send") == 0 && v->meets) {
		v->meet_sends = true;
		printf("sending\n");
	} else if (strcmp(line, "part") == 0 && v->meets) {
		part(v);
		printf("parted\n");
	} else if (strcmp(line, "count") == 0) {
		printf("count %llu %llu %llu\n", (unsigned long long)f->got,
			(unsigned long long)v->met_got, (unsigned long long)v->strays);
	} else {
		die(line);
	}
	fflush(stdout);
}

/* Does what has come to the input. Returns false at its end. */
static bool
input_serve(struct victim *v, struct friendly *f)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[256];
	size_t len = 0;

	if (poll(&in, 1, 0) == 0)
		return true;
	while (len < sizeof(line) - 1 && read(STDIN_FILENO, line + len, 1) == 1) {
		if (line[len] == '\n') {
			line[len] = '\0';
			command_do(v, f, line);
			return true;
		}
		len++;
	}
	return false;
}

static void
first_run(struct friendly *f, struct victim *v)
{
	bool ends = false;

	f->last_ns = now_ns();
	for (uint64_t polls = 1; !ends || f->got != f->sent; polls++) {
		while (!ends && f->sent - f->got < WINDOW)
			message_send(f, f->sent);
		(void)message_take(f);
		if (polls % LOOK != 0)
			continue;
		met_serve(v);
		ends = ends || !input_serve(v, f);
		/* Others, such as the daemon, need the cores too; and so it also sleeps and is woken. */
		others_run_us(20);
		/* The friend may have acknowledged all before it ended. */
		if (f->sent - f->got < DEPTH && now_ns() - f->last_ns > IDLE_NS)
			message_send(f, f->sent);
	}
}

int
main(void)
{
	struct friendly f = {.sent = 0};
	struct victim v = {.meets = false};
	int link[2], status = 1;
	uint32_t peer;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link) != 0 || (child = fork()) < 0)
		die("socketpair or fork");
	close(link[child == 0]);
	end_open(&f.end);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(STDIN_FILENO);
		_exit(friend_run(&f, link[0]) != 0);
	}
	strays_open(&v, &f.end);
	peer = friend_connect(&f.end, link[1]);
	printf("running %d %u %u %u %u\n", (int)child, f.end.qp->qp_num,
		v.unconnected->qp_num, v.stray.qp->qp_num, peer);
	fflush(stdout);
	first_run(&f, &v);
	close(link[1]);
	waitpid(child, &status, 0);
	if (v.meets)
		part(&v);
	strays_close(&v);
	printf("messages %llu\n", (unsigned long long)f.got);
	return end_close(&f.end) != 0 || status != 0;
}
