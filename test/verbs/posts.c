/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts a million requests of each kind, arms an SRQ and polls a million times, between marks that a
 * system call tracer sees: close() of an invalid descriptor. strace_test.py counts the
 * system calls between the marks.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define MILLION 1000000
#define QPS 16
#define DEPTH 65536

static void
mark(int n)
{
	close(-1000 - n);
}

static void
post_srq(struct verbs_side *s)
{
	for (unsigned i = 0; i < MILLION; i++)
		assert_int_equal(pair_post_srq(s, i, 0, 64), 0);
}

static void
post_send(struct verbs_side *s)
{
	for (unsigned i = 0; i < MILLION; i++)
		assert_int_equal(pair_send(s, i % QPS, i, 0, 64, 0), 0);
}

static void
post_recv(struct verbs_side *s)
{
	for (unsigned i = 0; i < MILLION; i++)
		assert_int_equal(pair_post_recv(s, i % QPS, i, 0, 64), 0);
}

static void
arm_srq(struct verbs_side *s)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};

	for (unsigned i = 0; i < MILLION; i++)
		assert_int_equal(ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT), 0);
	attr.srq_limit = 0; /* no event */
	assert_int_equal(ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT), 0);
}

/* Runs engines, polls and posts until enough messages arrived. */
static void
traffic(struct verbs_pair *p)
{
	struct ibv_wc wc[32];
	unsigned received = 0;

	for (unsigned polls = 0; polls < MILLION || received < MILLION / 10; polls++) {
		pair_poll(p);
		received += (unsigned)ibv_poll_cq(p->b.recv_cq, 32, wc);
	}
}

int
main(void)
{
	static struct verbs_pair with_srq, with_rq;

	pair_open(&with_srq,
		&(struct verbs_pair_conf){
			.srq_wr = 1 << 20, .qps = QPS, .cap = {.max_send_wr = DEPTH}});
	pair_open(&with_rq,
		&(struct verbs_pair_conf){.qps = QPS, .cap = {.max_recv_wr = DEPTH}});
	mark(0);
	post_srq(&with_srq.b);
	mark(1);
	post_send(&with_srq.a);
	mark(2);
	post_recv(&with_rq.b);
	mark(3);
	arm_srq(&with_srq.b);
	mark(4);
	traffic(&with_srq);
	mark(5);
	/* The pair opened last first: pair_close() compares the open descriptors. */
	pair_close(&with_rq);
	pair_close(&with_srq);
	return 0;
}
