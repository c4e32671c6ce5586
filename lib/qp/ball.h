/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a message before it is there, of one that comes and of one that goes: the two
 * halves of a ball game (engine/answer.h). As the calls that drive a QP (qp.h): whoever holds its
 * engine makes them.
 */
#ifndef ROCADE_QP_BALL_H
#define ROCADE_QP_BALL_H

#include "qp/qp.h"

/* A message of one packet that is expected, see catch.c: the receive that it will take. */
struct qp_catch {
	struct recv_ring *ring;
	uint32_t cons; /* the receive's index there */
	uint32_t len;  /* bytes of the payload */
	uint64_t wr_id;
	uint8_t *to;
	struct key_proof proof; /* that they may be written there */
};

/* Whether a message with such headers, of any PSN, can be caught: while the QP is in RTS and until
 * the next control call. */
bool qp_expects(const struct qp *qp, const struct pkt_view *view);
/* Looks up what a message of len bytes (> 0) will take. False: there is nothing that can be caught
 * with. Good until the next control call. */
bool qp_catch(const struct qp *qp, struct qp_catch *ball, uint32_t len);
/* A message with the headers of qp_expects() has come, whose ICRC is right. It has been taken in as
 * by qp_rx(), and an acknowledgement is owed; or the catch is worth nothing, and nothing has
 * happened. */
bool qp_catch_take(
	struct qp *qp, const struct qp_catch *ball, uint32_t psn, const uint8_t *payload);

/* A packet that is expected to be sent, see draft.c. */
struct qp_draft {
	struct pkt pkt; /* its frame */
	uint8_t *payload;
	uint32_t len; /* bytes of it */
	uint32_t crc; /* of all before it */
	uint32_t psn;
};

/* Drafts a SEND of len bytes, the request behind those that were sent, into the frame
 * draft->pkt, with room for the path MTU. False: there can be none. */
bool qp_draft(struct qp *qp, struct qp_draft *draft, uint32_t len);
/* A request has been posted: whether it is all there is to send, and as was expected. The
 * packet is complete then, and to be sent; the QP learns of it by qp_draft_sent(), which is called
 * before any other of these calls and before any control call. Else the draft is worth nothing. */
bool qp_draft_fill(const struct qp *qp, struct qp_draft *draft);
void qp_draft_sent(struct qp *qp, const struct qp_draft *draft, uint64_t now);

#endif
