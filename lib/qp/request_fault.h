/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * A send request that a script of faults makes fail (rocade-faults(1)). It sends no
 * packet. Once the requests before it are done it completes with the status that the
 * script names, and the QP goes to ERR or SQE, as after any request that fails. It has an
 * opcode of its own, so the requester tests nothing for it when it sends other requests.
 */
#ifndef ROCADE_QP_REQUEST_FAULT_H
#define ROCADE_QP_REQUEST_FAULT_H

#include "queue/sq.h"

struct qp;

/* wqe: written, and not published yet. ud: of a UD QP. */
void request_fault_set(
	struct send_wqe *wqe, bool ud, enum ibv_wc_status status, uint32_t vendor_err);

/* The place of a request packet in the send queue. */
struct request_packet {
	uint32_t idx;    /* of its request, counted since RESET */
	uint32_t packet; /* of the request's packets, from 0 */
};

/* Finds the place of packet psn, which the QP has built. Returns false if the QP does not
 * know its request any more. With the engine lock held. */
bool request_packet_find(const struct qp *qp, uint32_t psn, struct request_packet *out);

static inline bool
request_is_to_fail(const struct send_wqe *wqe)
{
	return (wqe->opcode & WQE_FAULT) != 0;
}

#endif
