/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "ext.h"

#define SENDS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WRITES (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define ANSWERED                                                                         \
	(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                  \
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define WINDOWS                                                                          \
	(IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

struct ibv_qp *
ext_qp_create(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = SENDS,
	};
	struct ibv_qp *qp;

	if (attr->qp_type != IBV_QPT_UD)
		ex.send_ops_flags |= WRITES;
	if (attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_XRC_SEND)
		ex.send_ops_flags |= ANSWERED | WINDOWS;
	qp = ibv_create_qp_ex(ctx, &ex);
	attr->cap = ex.cap;
	return qp;
}

static void
wr_build(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, wr->invalidate_rkey);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, wr->invalidate_rkey);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(
			ex, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(
			ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	default:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			wr->wr.atomic.compare_add);
		break;
	}
}

static void
wr_set_data(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[2];

	if ((wr->send_flags & IBV_SEND_INLINE) == 0) {
		if (wr->num_sge == 1 && chance(500))
			ibv_wr_set_sge(ex, wr->sg_list->lkey, wr->sg_list->addr,
				wr->sg_list->length);
		else
			ibv_wr_set_sge_list(ex, (size_t)wr->num_sge, wr->sg_list);
		return;
	}
	for (int i = 0; i < wr->num_sge && i < 2; i++)
		bufs[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
			.length = wr->sg_list[i].length};
	if (wr->num_sge == 1)
		ibv_wr_set_inline_data(ex, bufs[0].addr, bufs[0].length);
	else
		ibv_wr_set_inline_data_list(ex, (size_t)wr->num_sge, bufs);
}

int
ext_post(struct ibv_qp *qp, const struct ibv_send_wr *list)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	CHECK(ex != NULL, "the QP is not an extended one");
	ibv_wr_start(ex);
	for (; list != NULL; list = list->next) {
		ex->wr_id = list->wr_id;
		ex->wr_flags = list->send_flags & ~(unsigned)IBV_SEND_INLINE;
		wr_build(ex, list);
		if (qp->qp_type == IBV_QPT_UD)
			ibv_wr_set_ud_addr(ex, list->wr.ud.ah, list->wr.ud.remote_qpn,
				list->wr.ud.remote_qkey);
		if (list->opcode == IBV_WR_LOCAL_INV || list->opcode == IBV_WR_BIND_MW)
			continue;
		if (qp->qp_type == IBV_QPT_XRC_SEND)
			ibv_wr_set_xrc_srqn(ex, list->qp_type.xrc.remote_srqn);
		wr_set_data(ex, list);
	}
	return ibv_wr_complete(ex);
}

struct ibv_cq *
ext_cq_create(struct cq_model *m)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = m->size,
		.cq_context = m,
		.channel = m->channel,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			    IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(m->host->ctx, &attr);

	CHECK(ex != NULL, "ibv_create_cq_ex: %s", strerror(errno));
	return ibv_cq_ex_to_cq(ex);
}

int
ext_poll(struct cq_model *m, int n, struct ibv_wc *wc)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)m->cq;
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(ex, &attr), got = 0;

	if (err == ENOENT)
		return 0;
	CHECK(err == 0, "ibv_start_poll: %d", err);
	do {
		uint64_t stamp = ibv_wc_read_completion_ts(ex);

		/* The time stamp of a flush by a control call is that of the engine's
		 * last pass. */
		if (ex->status != IBV_WC_SUCCESS)
			stamp = RTE_MAX(stamp, m->stamp);
		CHECK(stamp >= m->stamp && stamp <= sim.now,
			"host %u cq %u: time stamp %llu after %llu, now %llu",
			m->host->index, m->index, (unsigned long long)stamp,
			(unsigned long long)m->stamp, (unsigned long long)sim.now);
		m->stamp = stamp;
		wc[got++] = (struct ibv_wc){
			.wr_id = ex->wr_id,
			.status = ex->status,
			.opcode = ibv_wc_read_opcode(ex),
			.vendor_err = ibv_wc_read_vendor_err(ex),
			.byte_len = ibv_wc_read_byte_len(ex),
			.imm_data = ibv_wc_read_imm_data(ex),
			.qp_num = ibv_wc_read_qp_num(ex),
			.src_qp = ibv_wc_read_src_qp(ex),
			.wc_flags = ibv_wc_read_wc_flags(ex),
		};
	} while (got < n && (err = ibv_next_poll(ex)) == 0);
	CHECK(err == 0 || err == ENOENT, "ibv_next_poll: %d", err);
	ibv_end_poll(ex);
	return got;
}
