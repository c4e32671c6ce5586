/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH (annex A19 of the IBA specification) for programs that are built with a <infiniband/verbs.h>
 * without ibv_wr_flush(), which rdma-core has from release 47 on. The library has FLUSH with any release,
 * so a program that is built with a later header uses IBV_QP_EX_WITH_FLUSH and ibv_wr_flush(), which do
 * the same.
 *
 * Each device of Rocade advertises ROCADE_DEVICE_FLUSH_GLOBAL. The QP is RC, of ibv_create_qp_ex(3) with
 * ROCADE_QP_EX_WITH_FLUSH in send_ops_flags. At the peer the QP and the memory region have
 * ROCADE_ACCESS_FLUSH_GLOBAL. A FLUSH completes when the QP's earlier WRITEs can be seen at the peer.
 */
#ifndef ROCADE_FLUSH_H
#define ROCADE_FLUSH_H

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

/* IB_UVERBS_DEVICE_FLUSH_GLOBAL, in device_cap_flags_ex of ibv_query_device_ex(3) */
#define ROCADE_DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define ROCADE_QP_EX_WITH_FLUSH (1u << 11)   /* IBV_QP_EX_WITH_FLUSH */
#define ROCADE_ACCESS_FLUSH_GLOBAL (1u << 8) /* IBV_ACCESS_FLUSH_GLOBAL */
#define ROCADE_WR_FLUSH 14                   /* IBV_WR_FLUSH, an opcode of a request */
#define ROCADE_WC_FLUSH 8      /* IBV_WC_FLUSH, an opcode of struct ibv_wc */
#define ROCADE_FLUSH_GLOBAL 1u /* IBV_FLUSH_GLOBAL, a type */
#define ROCADE_FLUSH_RANGE 0u  /* IBV_FLUSH_RANGE, a level: these bytes */
#define ROCADE_FLUSH_MR 1u     /* IBV_FLUSH_MR, a level: the whole region */

/*
 * Begins a FLUSH between ibv_wr_start(3) and ibv_wr_complete(3), as ibv_wr_flush(): of len bytes from
 * remote_addr on, or, with ROCADE_FLUSH_MR, of the region of rkey. It takes no SGE.
 *
 * EINVAL: qp is NULL, not of a Rocade device, or created without send_ops_flags. Else 0: what is wrong with
 * the request is the result of ibv_wr_complete(3).
 */
int rocade_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
	uint8_t type, uint8_t level);

#ifdef __cplusplus
}
#endif

#endif
