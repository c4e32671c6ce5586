/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that libibverbs has from IBVERBS_1.15 on (rdma-core 59 to 65) and that the
 * <infiniband/verbs.h> of rdma-core 44 does not declare. A newer header declares the same
 * functions; its structures are not used here, so that both headers will do. The layouts below
 * are the ABI of 64-bit Linux. An older application passes a structure that ends earlier: a member
 * is read only if its bit in the mask says so.
 */
#ifndef ROCADE_VERBS_NEWER_H
#define ROCADE_VERBS_NEWER_H

#include <assert.h>
#include <stddef.h>

#include <infiniband/verbs.h>

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* FLUSH, of rdma-core 47. */
typedef void wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
	size_t len, uint8_t type, uint8_t level);
/* struct ibv_qp_ex, to wr_flush. That of an earlier header ends in front of it. */
struct newer_qp_ex {
	uint8_t before[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)];
	wr_flush_fn *wr_flush;
};
#ifdef HAVE_WR_FLUSH
static_assert(
	offsetof(struct newer_qp_ex, wr_flush) == offsetof(struct ibv_qp_ex, wr_flush),
	"the ABI of struct ibv_qp_ex");
#endif

/* Bits of the capabilities of on-demand paging. */
#define ODP_SUPPORT_FLUSH (1u << 6)
#define ODP_SUPPORT_ATOMIC_WRITE (1u << 7)

/* Bits of comp_mask of struct ibv_mr_init_attr. */
#define MR_INIT_IOVA (UINT64_C(1) << 0)
#define MR_INIT_ADDR (UINT64_C(1) << 1)
#define MR_INIT_FD (UINT64_C(1) << 2)
#define MR_INIT_FD_OFFSET (UINT64_C(1) << 3)
#define MR_INIT_DMAH (UINT64_C(1) << 4)
#define MR_INIT_BUF (UINT64_C(1) << 5)

/* struct ibv_mr_init_attr */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};
static_assert(
	sizeof(struct mr_init_attr) == 72 && offsetof(struct mr_init_attr, buf) == 64,
	"the ABI of struct ibv_mr_init_attr");

/* struct ibv_comp_cntr: what the application sees of it */
struct comp_cntr_head {
	struct ibv_context *context;
	uint32_t handle;
};
/* enum ibv_comp_cntr_type */
#define COMP_CNTR_WRS 0
#define COMP_CNTR_BYTES 1
/* struct ibv_comp_cntr_init_attr */
struct comp_cntr_init_attr {
	uint32_t comp_mask, type, flags;
};
/* struct ibv_comp_cntr_caps */
struct comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t qp_attach_ops; /* bits of enum counted_op */
};
/* struct ibv_qp_attach_comp_cntr_attr */
struct comp_cntr_attach_attr {
	uint32_t comp_mask, op_mask;
};
static_assert(sizeof(struct comp_cntr_init_attr) == 12 &&
		      sizeof(struct comp_cntr_caps) == 16 &&
		      sizeof(struct comp_cntr_attach_attr) == 8,
	"the ABI of completion counters");

/* IBVERBS_1.15 */
struct ibv_dmah *ibv_alloc_dmah(
	struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);

/* IBVERBS_1.16 */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_query_port_speed(
	struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

/* IBVERBS_1.17 */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(
	struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);

/* IBVERBS_1.18 */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
int _ibv_query_comp_cntr_caps(
	struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_size);
struct ibv_comp_cntr *ibv_create_comp_cntr(
	struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter);
int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
	struct ibv_qp_attach_comp_cntr_attr *attr);

#endif
