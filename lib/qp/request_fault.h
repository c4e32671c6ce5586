/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* A send request that fails, because a script of faults wants it (rocade-faults(1)): it sends no packet, and once the
 * requests before it are done it completes with a chosen status. The QP goes to ERR or SQE then, as after any request
 * that fails. It is a request of another opcode, so that no other request is looked at for it. */
#ifndef ROCADE_QP_REQUEST_FAULT_H
#define ROCADE_QP_REQUEST_FAULT_H

#include "queue/sq.h"

struct qp;

/* wqe: written, and not published yet. ud: of a UD QP. */
void request_fault_set(
	struct send_wqe *wqe, bool ud, enum ibv_wc_status status, uint32_t vendor_err);

/* Which request a request packet is of: its index since RESET, and which of its packets, from 0. */
struct request_packet {
	uint32_t idx;
	uint32_t packet;
};

/* psn: of a packet that the QP has built. Returns false if its request is not known any more. With the engine lock
 * held. */
bool request_packet_find(const struct qp *qp, uint32_t psn, struct request_packet *out);

static inline bool
request_is_to_fail(const struct send_wqe *wqe)
{
	return (wqe->opcode & WQE_FAULT) != 0;
}

#endif
