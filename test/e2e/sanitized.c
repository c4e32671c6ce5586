/* SPDX-License-Identifier: BSD-3-Clause */
/* A program for sanitizers: two threads send each other messages and compare them. Each has a device
 * context, a QP and a buffer of its own; only their QP numbers pass from one to the other. Then it has
 * the fault that its argument names:
 *
 *   none      no fault
 *   left      it ends with its contexts open
 *   leak      lost memory          (AddressSanitizer)
 *   overflow  a write behind a buffer (AddressSanitizer)
 *   shift     an undefined shift   (UndefinedBehaviorSanitizer)
 *   race      two threads write a variable (ThreadSanitizer) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow_end.h"

#define MESSAGES 500

struct side {
	struct end end;
	uint8_t expected[SIZE];
	struct side *peer;
	bool left, polls;
};

static pthread_barrier_t barrier;
static unsigned raced;

static void
wait_event(struct end *e)
{
	struct ibv_cq *cq;
	void *arg;

	if (ibv_get_cq_event(e->channel, &cq, &arg) != 0)
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0) != 0)
		die("ibv_req_notify_cq");
}

static void
received_check(struct side *s, unsigned slot, uint64_t n)
{
	message_fill(s->expected, n);
	if (memcmp(s->end.buf + (size_t)slot * SIZE, s->expected, SIZE) != 0)
		die("a message differs");
}

/* Slots below DEPTH receive, those above send, one at a time. */
static void
messages_exchange(struct side *s)
{
	struct end *e = &s->end;
	unsigned sent = 0, acked = 0, received = 0;
	struct ibv_wc wc;

	while (acked < MESSAGES || received < MESSAGES) {
		int n;

		if (sent == acked && sent < MESSAGES && sent <= received) {
			message_fill(e->buf + (size_t)DEPTH * SIZE, sent++);
			if (send_post(e, DEPTH) != 0)
				die("ibv_post_send");
		}
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS))
			die("a request failed");
		if (n == 0 && !s->polls)
			wait_event(e);
		if (n > 0 && wc.opcode == IBV_WC_RECV) {
			received_check(s, (unsigned)wc.wr_id, received++);
			if (recv_post(e, (unsigned)wc.wr_id) != 0)
				die("ibv_post_recv");
		} else if (n > 0) {
			acked++;
		}
	}
}

static void *
side_run(void *arg)
{
	struct side *s = arg;
	struct end *e = &s->end;

	end_open(e);
	if (qp_init(e->qp) != 0 || ibv_req_notify_cq(e->cq, 0) != 0)
		die("ibv_modify_qp to INIT");
	for (unsigned i = 0; i < DEPTH; i++) {
		if (recv_post(e, i) != 0)
			die("ibv_post_recv");
	}
	pthread_barrier_wait(&barrier);
	if (qp_connect(e->qp, s->peer->end.qp->qp_num) != 0)
		die("connect");
	pthread_barrier_wait(&barrier);
	messages_exchange(s);
	pthread_barrier_wait(&barrier);
	if (!s->left && end_close(e) != 0)
		die("close");
	return NULL;
}

static void *
raced_write(void *arg)
{
	for (unsigned i = 0; i < 1000; i++)
		raced += arg == NULL;
	return NULL;
}

static void
both_run(void *(*fn)(void *), void *a, void *b)
{
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, fn, a) != 0 ||
		pthread_create(&threads[1], NULL, fn, b) != 0)
		die("pthread_create");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void
fault_run(const char *fault)
{
	volatile unsigned bits = 32;
	volatile char *volatile memory = malloc(16);

	if (strcmp(fault, "overflow") == 0)
		memory[bits - 16] = 1;
	if (strcmp(fault, "leak") != 0)
		free((void *)memory);
	memory = NULL;
	if (strcmp(fault, "shift") == 0)
		printf("%d\n", 1 << bits);
	if (strcmp(fault, "race") == 0)
		both_run(raced_write, NULL, NULL);
}

int
main(int argc, char **argv)
{
	static struct side sides[2];

	if (argc != 2)
		return 2;
	pthread_barrier_init(&barrier, NULL, 2);
	for (unsigned i = 0; i < 2; i++) {
		sides[i].peer = &sides[1 - i];
		sides[i].left = strcmp(argv[1], "left") == 0;
		sides[i].polls = i == 0;
	}
	both_run(side_run, &sides[0], &sides[1]);
	fault_run(argv[1]);
	printf("done\n");
	return 0;
}
