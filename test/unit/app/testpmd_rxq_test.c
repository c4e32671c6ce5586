/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues of rocade-testpmd, with an SRQ that this file stands for. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "rxq.h"

#define RECEIVES 128

static uint32_t room;             /* of the SRQ, and of the receive queue */
static uint64_t posted[RECEIVES]; /* how often each buffer is in the queue */

static int
post(struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr != NULL; wr = wr->next) {
		if (room == 0) {
			*bad = wr;
			return ENOMEM;
		}
		room--;
		posted[wr->wr_id]++;
	}
	return 0;
}

static int
fake_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	return post(wr, bad);
}

static int
fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	return post(wr, bad);
}

static struct ibv_context ctx = {
	.ops = {.post_srq_recv = fake_post_srq, .post_recv = fake_post_recv}};
static struct ibv_srq srq = {.context = &ctx};
static struct ibv_qp qp = {.context = &ctx};
static struct rxq rxq, other;

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static struct ibv_mr mr;

	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	return &mr;
}

struct ibv_mr *
ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	return 0;
}

static void
queue_begin(struct ibv_srq *of_srq, struct ibv_qp *of_qp)
{
	room = RECEIVES;
	memset(posted, 0, sizeof(posted));
	assert_int_equal(rxq_init(&rxq, of_srq, of_qp), 0);
	rxq.capacity = RECEIVES;
	assert_int_equal(rxq_grow(&rxq, NULL, RECEIVES, 64), 0);
}

static int
teardown(void **state)
{
	(void)state;
	rxq_fini(&other);
	rxq_fini(&rxq);
	return 0;
}

/* An engine has taken a receive, and still holds its slot. */
TEST_WITH(what_an_srq_refuses_is_posted_later, NULL, teardown)
{
	queue_begin(&srq, NULL);
	room = 100;
	assert_int_equal(rxq_post(&rxq), 0);
	assert_true(rxq.refused);
	assert_int_equal(rxq_posted(&rxq), 100);
	room = RECEIVES;
	assert_int_equal(rxq_post(&rxq), 0);
	assert_false(rxq.refused);
	for (unsigned i = 0; i < RECEIVES; i++)
		assert_int_equal(posted[i], 1);
}

/* Only the QP's own engine takes from a receive queue: it has room for what is spare. */
TEST_WITH(a_receive_queue_refuses_nothing, NULL, teardown)
{
	queue_begin(NULL, &qp);
	room = 100;
	assert_int_equal(rxq_post(&rxq), ENOMEM);
	assert_false(rxq.refused);
}

/* Each core posts again what it has taken itself. */
TEST_WITH(cores_share_the_buffers_of_an_srq, NULL, teardown)
{
	queue_begin(&srq, NULL);
	assert_int_equal(rxq_share(&other, &rxq), 0);
	assert_int_equal(rxq_post(&other), 0); /* it has none */
	assert_int_equal(room, RECEIVES);
	assert_int_equal(rxq_post(&rxq), 0);
	assert_int_equal(room, 0);
	assert_ptr_equal(other.bufs[5].data, rxq.bufs[5].data);
	rxq_return(&other, 5);
	rxq_return(&rxq, 6);
	room = 2;
	assert_int_equal(rxq_post(&other), 0);
	assert_int_equal(posted[5], 2);
	assert_int_equal(posted[6], 1);
	assert_int_equal(rxq_post(&rxq), 0);
	assert_int_equal(posted[6], 2);
}
