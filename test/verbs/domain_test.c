/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains and parent domains: they serve as PDs, and their objects take no
 * locks. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"
#include "verbs/objects.h"

static struct verbs_pair pair;
static struct ibv_td *td;
static struct ibv_pd *domain; /* of a, with the thread domain `td` */

static int
setup(void **state)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_parent_domain_init_attr parent = {0};

	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 8});
	td = ibv_alloc_td(pair.a.context, &attr);
	assert_non_null(td);
	assert_ptr_equal(td->context, pair.a.context);
	parent.pd = pair.a.pd;
	parent.td = td;
	domain = ibv_alloc_parent_domain(pair.a.context, &parent);
	assert_non_null(domain);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pair.a.pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	pair_close(&pair);
	return 0;
}

static struct ibv_cq *
domain_cq(struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(pair.a.context, &attr);

	return ex != NULL ? ibv_cq_ex_to_cq(ex) : NULL;
}

/* Objects of the domain use a region of the PD, and objects of the PD one of the
 * domain. */
TEST_WITH(domain_objects_carry_traffic, setup, teardown)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_send_sge = 1}, .qp_type = IBV_QPT_RC};
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_send_wr send = {.wr_id = 6,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad_send;
	struct ibv_srq_attr resize = {.max_wr = 32};
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	cq = domain_cq(domain);
	assert_non_null(cq);
	assert_true(to_cq(cq)->cq.unlocked);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = ibv_create_srq(domain, &srq_attr);
	assert_non_null(attr.srq);
	assert_true(to_srq(attr.srq)->srq.ring.unlocked);
	assert_int_equal(ibv_modify_srq(attr.srq, &resize, IBV_SRQ_MAX_WR), 0);
	assert_true(to_srq(attr.srq)->srq.ring.unlocked);
	qp = ibv_create_qp(domain, &attr);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, domain);
	assert_true(to_qp(qp)->qp->sq.unlocked);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &pair.b.gid, pair.b.qp[0]->qp_num);
	pair_to_rts(&pair.conf, qp);
	pair_modify_state(pair.b.qp[0], IBV_QPS_RESET);
	pair_to_init(pair.b.qp[0]);
	pair_to_rtr(&pair.conf, pair.b.qp[0], &pair.a.gid, qp->qp_num);
	pair_to_rts(&pair.conf, pair.b.qp[0]);

	mr = ibv_reg_mr(domain, pair.a.mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	memset(pair.a.mem, 7, 100);
	sge = (struct ibv_sge){(uintptr_t)pair.a.mem, 100, mr->lkey};
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 100), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	pair_poll_cq(&pair, cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 6);
	sge.lkey = pair.a.mr->lkey;
	assert_int_equal(ibv_post_srq_recv(attr.srq, &recv, &bad), 0);
	assert_int_equal(pair_send(&pair.b, 0, 9, 4096, 50, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, 50);
	pair_drain(&pair);

	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(attr.srq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY); /* the CQ uses it */
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* An address handle of the PD serves a QP of the domain. */
TEST_WITH(pd_address_handle_serves_domain_qp, setup, teardown)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4},
		.qp_type = IBV_QPT_UD};
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = pair.b.gid}};
	struct ibv_ah *ah = ibv_create_ah(pair.a.pd, &path);
	struct ibv_qp *qp = ibv_create_qp(domain, &attr);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = 99}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_non_null(ah);
	assert_non_null(qp);
	pair_ud_to_rts(qp, 1, 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Objects of a parent domain without a thread domain take locks. */
TEST_WITH(domain_without_thread_domain_locks, setup, teardown)
{
	struct ibv_parent_domain_init_attr parent = {.pd = pair.a.pd};
	struct ibv_pd *plain = ibv_alloc_parent_domain(pair.a.context, &parent);
	struct ibv_cq *cq;

	assert_non_null(plain);
	cq = domain_cq(plain);
	assert_non_null(cq);
	assert_false(to_cq(cq)->cq.unlocked);
	assert_int_equal(ibv_dealloc_pd(plain), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(plain), 0);
}

TEST_WITH(invalid_domains_are_refused, setup, teardown)
{
	struct ibv_td_init_attr td_attr = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr attr = {.pd = pair.a.pd, .td = td};

	errno = 0;
	assert_null(ibv_alloc_td(pair.a.context, &td_attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 1 << 2;
	assert_null(ibv_alloc_parent_domain(pair.a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_null(ibv_alloc_parent_domain(pair.a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	assert_null(ibv_alloc_parent_domain(pair.b.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = domain; /* a parent domain of a parent domain */
	assert_null(ibv_alloc_parent_domain(pair.a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = NULL;
	assert_null(ibv_alloc_parent_domain(pair.a.context, &attr));
	assert_int_equal(errno, EINVAL);
	/* A PD is not a parent domain. */
	errno = 0;
	assert_null(domain_cq(pair.a.pd));
	assert_int_equal(errno, EINVAL);
	assert_null(domain_cq(NULL));
	assert_int_equal(errno, EINVAL);
}
