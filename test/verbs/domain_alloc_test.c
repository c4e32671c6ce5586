/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocators of a parent domain (ibv_alloc_parent_domain(3)). */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define PIECES 32

static struct verbs_pair pair;
static struct ibv_pd *domain;

/* The answer of the allocator to the next calls. */
static enum { GIVE, DEFAULT, NONE, UNALIGNED } answer;

static struct piece {
	void *at;
	size_t size;
	uint64_t type;
} pieces[PIECES];
static unsigned given, taken;

static void *
allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	struct ibv_pd *other;
	void *at = NULL;

	assert_ptr_equal(pd, domain);
	assert_ptr_equal(context, &pair);
	assert_true(size != 0 && alignment != 0 && (alignment & (alignment - 1)) == 0);
	/* It may make any call: Rocade holds no lock. */
	other = ibv_alloc_pd(pair.a.context);
	assert_non_null(other);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 64), 0);
	if (answer == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (answer == NONE)
		return NULL;
	assert_int_equal(posix_memalign(&at, alignment, size + alignment), 0);
	/* Not cleared, as the memory of some programs. */
	memset(at, 0xFF, size + alignment);
	if (answer == UNALIGNED)
		at = (uint8_t *)at + 8;
	assert_true(given < PIECES);
	pieces[given++] = (struct piece){at, size, type};
	return at;
}

static void
release(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	unsigned i = 0;

	assert_ptr_equal(pd, domain);
	assert_ptr_equal(context, &pair);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 64), 0);
	while (i < given && pieces[i].at != at)
		i++;
	assert_true(i < given);
	assert_int_equal(pieces[i].type, type);
	pieces[i].at = NULL;
	free((uint8_t *)at - ((uintptr_t)at % 64 == 8 ? 8 : 0));
	taken++;
}

static int
setup(void **state)
{
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = allocate,
		.free = release,
		.pd_context = &pair};

	answer = GIVE;
	given = taken = 0;
	pair_open(&pair, &(struct verbs_pair_conf){.unconnected = true, .sig_all = true});
	attr.pd = pair.a.pd;
	domain = ibv_alloc_parent_domain(pair.a.context, &attr);
	return domain == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(given, taken);
	pair_close(&pair);
	return 0;
}

static struct ibv_cq *
domain_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(pair.a.context, &attr);

	return ex != NULL ? ibv_cq_ex_to_cq(ex) : NULL;
}

static struct ibv_srq *
domain_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 2}};

	return ibv_create_srq(domain, &attr);
}

static unsigned
pieces_of(enum rocade_resource type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < given; i++)
		n += pieces[i].type == (uint64_t)type;
	return n;
}

/* A SEND in each direction between a QP of the domain and b's. */
static void
traffic_run(struct verbs_side *s)
{
	struct ibv_wc wc;

	pair_modify_state(s->qp[0], IBV_QPS_RESET);
	pair_to_init(s->qp[0]);
	pair_to_rtr(&pair.conf, s->qp[0], &pair.b.gid, pair.b.qp[0]->qp_num);
	pair_to_rts(&pair.conf, s->qp[0]);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_to_init(pair.b.qp[0]);
	pair_to_rtr(&pair.conf, pair.b.qp[0], &pair.a.gid, s->qp[0]->qp_num);
	pair_to_rts(&pair.conf, pair.b.qp[0]);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 8192, 100), 0);
	assert_int_equal(pair_send(s, 0, 2, 0, 100, 0), 0);
	pair_poll_cq(&pair, s->send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	if (s->srq != NULL)
		assert_int_equal(pair_post_srq(s, 3, 0, 100), 0);
	else
		assert_int_equal(pair_post_recv(s, 0, 3, 0, 100), 0);
	assert_int_equal(pair_send(&pair.b, 0, 4, 0, 100, 0), 0);
	pair_poll_cq(&pair, s->recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 3);
	pair_drain(&pair);
}

static void
side_destroy(struct verbs_side *s)
{
	assert_int_equal(ibv_destroy_qp(s->qp[0]), 0);
	if (s->srq != NULL)
		assert_int_equal(ibv_destroy_srq(s->srq), 0);
	assert_int_equal(ibv_destroy_cq(s->send_cq), 0);
}

static void
queues_carry_traffic(bool srq)
{
	struct verbs_side s = pair.a;
	unsigned before = taken;

	s.pd = domain;
	s.send_cq = s.recv_cq = domain_cq();
	assert_non_null(s.send_cq);
	s.srq = srq ? domain_srq() : NULL;
	s.qp[0] = pair_qp_create(&pair.conf, &s, 0);
	assert_int_equal(taken, before);
	traffic_run(&s);
	/* Other rings come from the port, and the first ones stay until the end. */
	assert_int_equal(ibv_resize_cq(s.send_cq, 200), 0);
	if (srq)
		assert_int_equal(
			ibv_modify_srq(s.srq, &(struct ibv_srq_attr){.max_wr = 32},
				IBV_SRQ_MAX_WR),
			0);
	assert_int_equal(taken, before);
	traffic_run(&s);
	side_destroy(&s);
}

TEST_WITH(queues_live_in_memory_of_the_allocator, setup, teardown)
{
	queues_carry_traffic(false);
	assert_true(pieces_of(ROCADE_RESOURCE_QP) >= 2);
	assert_true(pieces_of(ROCADE_RESOURCE_CQ) >= 1);
	assert_int_equal(pieces_of(ROCADE_RESOURCE_SRQ), 0);
	queues_carry_traffic(true);
	assert_int_equal(pieces_of(ROCADE_RESOURCE_SRQ), 1);
}

TEST_WITH(default_memory_is_not_given_back, setup, teardown)
{
	answer = DEFAULT;
	queues_carry_traffic(true);
	assert_int_equal(given, 0);
}

/* Without memory the object is not created, and what it had got is given back. */
TEST_WITH(failed_allocation_fails_the_call, setup, teardown)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4},
		.qp_type = IBV_QPT_RC};

	for (unsigned i = 0; i < 2; i++) {
		answer = i == 0 ? NONE : UNALIGNED;
		errno = 0;
		assert_null(ibv_create_qp(domain, &attr));
		assert_int_equal(errno, ENOMEM);
		errno = 0;
		assert_null(domain_cq());
		assert_int_equal(errno, ENOMEM);
		errno = 0;
		assert_null(domain_srq());
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(given, taken);
	}
	assert_int_equal(given, 3);
}
