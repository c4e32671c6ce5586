/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return an errno value set errno to it, too, as those of libibverbs do. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "api_fixture.h"
#include "case.h"

#define expect_errno(err, call)                                                          \
	do {                                                                             \
		errno = 0;                                                               \
		assert_int_equal(call, err);                                             \
		assert_int_equal(errno, err);                                            \
	} while (0)

/* A call that succeeds leaves errno. */
#define expect_done(call)                                                                \
	do {                                                                             \
		errno = ENOTTY;                                                          \
		assert_int_equal(call, 0);                                               \
		assert_int_equal(errno, ENOTTY);                                         \
	} while (0)

TEST_WITH(objects_in_use, api_setup, api_teardown)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(pair.a.context);
	struct ibv_cq *cq = ibv_create_cq(pair.a.context, 1, NULL, channel, 0);
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(pair.a.context, &dm_attr);
	struct ibv_mr *mr = ibv_reg_dm_mr(pair.a.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);

	assert_non_null(cq);
	assert_non_null(mr);
	expect_errno(EBUSY, ibv_dealloc_pd(pair.a.pd));
	expect_errno(EBUSY, ibv_destroy_cq(pair.a.recv_cq));
	expect_errno(EBUSY, ibv_destroy_srq(pair.a.srq));
	expect_errno(EBUSY, ibv_destroy_comp_channel(channel));
	expect_errno(EBUSY, ibv_free_dm(dm));
	expect_done(ibv_dereg_mr(mr));
	expect_done(ibv_free_dm(dm));
	expect_done(ibv_destroy_cq(cq));
	expect_done(ibv_destroy_comp_channel(channel));
}

TEST_WITH(domains_in_use, api_setup, api_teardown)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(pair.a.context, &td_attr);
	struct ibv_parent_domain_init_attr domain_attr = {.pd = pair.a.pd, .td = td};
	struct ibv_pd *domain = ibv_alloc_parent_domain(pair.a.context, &domain_attr);
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(pair.a.context, &xrcd_attr);
	struct ibv_srq_init_attr_ex srq_attr = {.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pair.a.pd,
		.xrcd = xrcd,
		.cq = pair.a.recv_cq};
	struct ibv_srq *srq = ibv_create_srq_ex(pair.a.context, &srq_attr);

	assert_non_null(domain);
	assert_non_null(srq);
	expect_errno(EBUSY, ibv_dealloc_td(td));
	expect_errno(EBUSY, ibv_close_xrcd(xrcd));
	expect_done(ibv_destroy_srq(srq));
	expect_done(ibv_close_xrcd(xrcd));
	expect_done(ibv_dealloc_pd(domain));
	expect_done(ibv_dealloc_td(td));
}

TEST_WITH(wrong_changes, api_setup, api_teardown)
{
	struct ibv_qp_attr qp = {.qp_state = IBV_QPS_RTR};
	struct ibv_srq_attr srq = {.srq_limit = 100000};
	struct ibv_modify_cq_attr cq = {.attr_mask = 0};
	struct ibv_ece ece = {.comp_mask = 1};

	expect_errno(EINVAL, ibv_modify_qp(pair.a.qp[0], &qp, IBV_QP_STATE));
	expect_errno(EINVAL, ibv_modify_srq(pair.a.srq, &srq, IBV_SRQ_LIMIT));
	expect_errno(EINVAL, ibv_resize_cq(pair.a.recv_cq, 0));
	expect_errno(EINVAL, ibv_resize_cq(pair.a.recv_cq, INT32_MAX));
	expect_errno(EINVAL, ibv_modify_cq(pair.a.recv_cq, &cq));
	cq.attr_mask = 1 << 20;
	expect_errno(EOPNOTSUPP, ibv_modify_cq(pair.a.recv_cq, &cq));
	expect_errno(EINVAL, ibv_set_ece(pair.a.qp[0], &ece));
	expect_errno(EINVAL, ibv_req_notify_cq(pair.a.recv_cq, 0)); /* no channel */
	expect_errno(EINVAL, ibv_attach_mcast(pair.a.qp[0], &pair.a.gid, 0));
	expect_errno(EINVAL, ibv_detach_mcast(pair.a.qp[0], &pair.a.gid, 0));
}

TEST_WITH(wrong_queries, api_setup, api_teardown)
{
	struct ibv_port_attr port;
	struct ibv_values_ex values = {.comp_mask = 1u << 31};
	struct ibv_gid_entry gid;
	struct ibv_ah_attr path = {0};
	uint8_t mac[6];

	expect_errno(EINVAL, ibv_query_port(pair.a.context, 2, &port));
	expect_errno(EOPNOTSUPP, ibv_query_rt_values_ex(pair.a.context, &values));
	expect_errno(EOPNOTSUPP, ibv_query_gid_ex(pair.a.context, 1, 0, &gid, 1));
	expect_errno(EINVAL, ibv_query_gid_ex(pair.a.context, 2, 0, &gid, 0));
	errno = 0;
	assert_int_equal(ibv_query_gid_table(pair.a.context, &gid, 1, 1), -EOPNOTSUPP);
	assert_int_equal(errno, EOPNOTSUPP);
	expect_errno(
		EINVAL, ibv_resolve_eth_l2_from_gid(pair.a.context, &path, mac, NULL));
	expect_done(ibv_query_port(pair.a.context, 1, &port));
}

/* Those that post do the same, once they are refused. */
TEST_WITH(wrong_posts, api_setup, api_teardown)
{
	struct ibv_mw *mw = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_INLINE,
		.bind_info = {
			.mr = pair.a.mr, .addr = (uintptr_t)pair.a.mem, .length = 1}};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_DRIVER1};
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = -1};

	assert_non_null(mw);
	expect_errno(EINVAL, ibv_bind_mw(pair.a.qp[0], mw, &bind));
	expect_errno(EINVAL, ibv_post_send(pair.a.qp[0], &wr, &bad));
	expect_errno(EINVAL, ibv_post_recv(pair.a.qp[0], &recv, &bad_recv));
	expect_errno(EINVAL, ibv_post_srq_recv(pair.a.srq, &recv, &bad_recv));
	expect_done(ibv_dealloc_mw(mw));
}
