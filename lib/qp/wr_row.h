/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Work requests: what each opcode permits, sends and completes with. For the requester, and
 * for posts (lib/verbs). */
#ifndef ROCADE_QP_WR_ROW_H
#define ROCADE_QP_WR_ROW_H

#include "queue/sq.h"

/* Kinds of work requests, by what they send and how the responder answers. */
enum wr_kind {
	WR_NONE,
	WR_SEND,
	WR_WRITE,
	/* Completed by a response of their own. */
	WR_READ,
	WR_ATOMIC,
	WR_ATOMIC_WRITE,
	WR_FLUSH,
	/* No packet: executed by the requester itself, in queue order; see local_op.c. */
	WR_LOCAL_INV,
	WR_BIND_MW,
	/* The same, and it fails: see request_fault.h. */
	WR_FAULT,
};

/* Members of struct ibv_send_wr that a request uses besides its SGEs and immediate. */
enum post_form {
	POST_PLAIN,
	POST_RDMA,
	POST_ATOMIC,
	POST_INVALIDATE,
	POST_LOCAL_INV,
	POST_BIND,
};

#define WR_OPCODE_FLUSH 14 /* IBV_WR_FLUSH of newer headers */

#define SEND_FLAGS                                                                       \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
#define READ_FLAGS (SEND_FLAGS & ~IBV_SEND_INLINE)
#define LOCAL_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED)

struct wr_row {
	uint8_t kind;         /* enum wr_kind; WR_NONE: unsupported opcode */
	uint8_t wc;           /* enum ibv_wc_opcode */
	uint8_t opcode[2][2]; /* RC opcode by [is first packet][is last packet] */
	uint8_t flags;        /* IBV_SEND_* that it permits; 0: unsupported opcode */
	uint8_t form;         /* enum post_form */
	uint16_t types;       /* a bit for each enum ibv_qp_type that has it */
	bool needs_check;     /* send_check_more() checks it */
};

extern const struct wr_row wr_rows[WR_ROWS]; /* indexed by enum ibv_wr_opcode */

static inline const struct wr_row *
wr_row(const struct send_wqe *wqe)
{
	return &wr_rows[wqe->opcode];
}

static inline bool
wr_has_response(unsigned kind)
{
	return kind >= WR_READ && kind <= WR_FLUSH;
}

/* True if QPs of this type have the request. */
static inline bool
wr_of_type(const struct wr_row *row, unsigned qp_type)
{
	return qp_type < 8 * sizeof(row->types) && (row->types >> qp_type & 1) != 0;
}

#endif
