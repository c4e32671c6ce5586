/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of lib/qp only. */
#ifndef ROCADE_QP_QP_INTERNAL_H
#define ROCADE_QP_QP_INTERNAL_H

#include "qp/qp.h"
#include "qp/verdict.h"
#include "wire/psn.h"

/* Encodes a pending response: AETH syndrome + 1, as 0 means that none is pending. */
#define AETH_PENDING(syndrome) ((uint8_t)((syndrome) + 1))
#define AETH_PENDING_ACK AETH_PENDING(AETH_ACK)
#define AETH_PENDING_SEQ_NAK AETH_PENDING(AETH_NAK_SEQ)

static inline uint32_t
qp_pmtu(const struct qp *qp)
{
	return 1u << qp->pmtu_shift;
}

/* True if all packets of a request lie before psn. Compares the last PSN, not the end: a
 * request can have 2^23 packets. The difference of its first PSN and its end, as a signed
 * 24-bit number, is then ambiguous. */
static inline bool
psn_range_before(const struct psn_range *range, uint32_t psn)
{
	return psn_diff(psn_range_end(range) - 1, psn) < 0;
}

/* True while fewer than QP_MAX_UNACKED PSNs are unacknowledged. A READ request takes many
 * PSNs and may exceed the limit. */
static inline bool
req_below_max_unacked(const struct qp *qp)
{
	return ((qp->req.next_psn - qp->req.una_psn) & PSN_MASK) < QP_MAX_UNACKED;
}

/* req_build.c */

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
};

/* Opcodes of newer libibverbs headers, with the values defined there. */
#define WR_OPCODE_FLUSH 14
#define WC_OPCODE_FLUSH 8

struct wr_row {
	uint8_t kind;         /* enum wr_kind; WR_NONE: unsupported opcode */
	uint8_t wc;           /* enum ibv_wc_opcode */
	uint8_t opcode[2][2]; /* RC opcode by [is first packet][is last packet] */
};

#define WR_ROWS 16
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

/* Builds packet next_psn of the started request next_idx and advances next_psn. final: no
 * packet follows it for now, so it sets AckReq. Returns false if the QP may not read the
 * packet's memory. */
bool req_build(struct qp *qp, struct pkt *pkt, bool final);

/* IBV_ACCESS_FLUSH_GLOBAL in ibv_qp_attr.qp_access_flags of newer headers. The right of a
 * memory region is KEY_ACCESS_FLUSH_GLOBAL. Persistent FLUSH is not supported. */
#define QP_ACCESS_FLUSH_GLOBAL (1u << 8)

/* local_op.c */

/* True if a started request is a local operation: it takes no PSN. */
static inline bool
psn_range_is_local(const struct psn_range *range)
{
	return range->first_psn == psn_range_end(range);
}

/* Executes the local operation at next_idx. */
enum ibv_wc_status local_execute(struct qp *qp, const struct send_wqe *wqe);

/* requester.c */
void req_reset(struct qp *qp, uint32_t psn);
bool req_has_next(const struct qp *qp);
/* Packets that one READ request asks for, at most. A power of two. */
uint32_t req_read_chunk(const struct qp *qp);
unsigned req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);
/* Resends from this packet on (una_psn <= psn <= next_psn). */
void req_rollback(struct qp *qp, uint32_t psn);
/* Brings peer->inflight up to date with una_psn and next_psn. */
void req_account(struct qp *qp);
uint64_t req_timeout_ns(const struct qp *qp);

/* Packets up to next_psn that count in peer->inflight. Packets sent without AckReq do
 * not. */
static inline uint32_t
req_charge(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	bool suppressed = psn_diff(req->suppressed_psn, req->una_psn) > 0;

	return (req->next_psn -
		       (unlikely(suppressed) ? req->suppressed_psn : req->una_psn)) &
	       PSN_MASK;
}

/* True if packets are unacknowledged and none of them had AckReq set. */
static inline bool
req_awaits_no_ack(const struct qp *qp)
{
	return qp->req.unacked == 0 && qp->req.next_psn != qp->req.una_psn;
}

/* ackreq.c */
/* True if the QP may send without AckReq. The caller has checked
 * qp_peer_has_many_qps(). */
bool ackreq_can_suppress(const struct qp *qp);
/* Packets up to next_psn were sent, the last of them without AckReq. */
void ackreq_suppress(struct qp *qp, uint64_t now);
/* The last packet had AckReq set: piggybacks the peer's packets sent without AckReq on
 * it. */
void ackreq_piggyback(struct qp *qp);
/* Releases the piggybacked in-flight count: acknowledged, or the QP stops. */
void ackreq_release(struct qp *qp);
/* Counts all packets from una_psn on again: they are resent or given up. */
void ackreq_count_all(struct qp *qp);
/* How long packets may stay without AckReq before a tail-loss probe is sent. */
uint64_t ackreq_delay_ns(const struct qp *qp);

/* tlp.c */
/* Arms the probe timer after packets were sent without AckReq. */
void tlp_sent_suppressed(struct qp *qp, uint64_t now);
/* Packets up to next_psn were sent, the last of them with AckReq. sent: req.sent_psn
 * before that; packets before it were resent. */
void tlp_sent(struct qp *qp, uint32_t sent, uint64_t now);
/* una_psn has advanced. one: by exactly one PSN. */
void tlp_progress(struct qp *qp, bool one, uint64_t now);
/* Cancels the probe: an RNR wait, an error, or a rollback for another reason. */
void tlp_cancel(struct qp *qp);
/* Requests an acknowledgement of packets sent without AckReq, by a copy of the oldest
 * packet. If the oldest request is a READ or an atomic, its response or its timeout comes
 * first. */
void tlp_request_ack(struct qp *qp);
/* Handles the expiry of tlp_deadline. */
void tlp_timeout(struct qp *qp, uint64_t now);

/* completer.c */
void comp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);
void comp_ack_timeout(struct qp *qp);
void comp_check_drained(struct qp *qp);
/* Completes the oldest request with an error and moves the QP to ERR (SQE if
 * unreliable). */
void comp_fail(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor);

/* responder.c */
void resp_reset(struct qp *qp, uint32_t psn);
enum verdict resp_rx(struct qp *qp, const struct pkt_view *view);
/* Makes room for this many READs and atomics. Returns 0 or -ENOMEM. */
int resp_set_depth(struct qp *qp, uint32_t depth);

static inline bool
resp_res_pending(const struct qp *qp)
{
	return qp->resp.res_next != qp->resp.res_end;
}

/* Call after every write of res_next or res_end: updates qp->res_pending, which is read far
 * more often. */
static inline void
resp_res_moved(struct qp *qp)
{
	qp->res_pending = resp_res_pending(qp);
}

/* The packets before epsn were executed. Returns false while a sequence NAK that has not
 * been sent stays pending, because a packet after epsn was dropped: it then names epsn. */
static inline bool
resp_advance(struct qp *qp, uint32_t epsn)
{
	struct responder *resp = &qp->resp;

	resp->epsn = epsn;
	if (unlikely(qp->aeth_pending == AETH_PENDING_SEQ_NAK) &&
		psn_diff(epsn, resp->nak_high_psn) <= 0)
		return false;
	resp->wait = RESP_OPEN;
	return true;
}

/* The last packet of a message was executed. */
static inline void
resp_message_done(struct qp *qp)
{
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	qp->stats.rx_msgs++;
}

/* Takes in a request packet that is in sequence. */
enum verdict resp_request(struct qp *qp, const struct pkt_view *view);
/* Raises COMM_EST once. */
void resp_established(struct qp *qp);

/* ack.c */
/* A request packet with a PSN after ePSN: packets are missing. */
void resp_out_of_sequence(struct qp *qp, uint32_t psn);
/* A duplicate of a SEND or WRITE packet. */
void resp_duplicate(struct qp *qp, uint32_t psn);
/* Builds the pending acknowledgement. */
void resp_ack_build(struct qp *qp, struct pkt *pkt);

/* resp_read.c: READ and atomic requests. */
enum verdict resp_read(struct qp *qp, const struct pkt_view *view);
enum verdict resp_atomic(struct qp *qp, const struct pkt_view *view);
/* VERDICT_GO if a responder resource is free. */
enum verdict resp_depth_check(struct qp *qp, const struct pkt_view *view);
/* Adds an executed request: it takes its PSNs and a responder resource. Its response
 * acknowledges everything before it, so a pending acknowledgement is cancelled. Returns
 * VERDICT_GO. */
enum verdict resp_res_add(struct qp *qp, const struct resp_res *res);
void resp_res_replay(struct qp *qp, const struct pkt_view *view);
/* The highest PSN that an acknowledgement of a duplicate at psn may name. */
uint32_t resp_ack_limit(const struct qp *qp, uint32_t psn);
/* Forgets responder resources so old that their PSNs are about to be reused. Call after
 * ePSN has advanced. */
void resp_res_expire(struct qp *qp);
/* ePSN advances by at most this many packets between two calls of resp_res_expire(). */
#define RES_EXPIRE_EVERY (UINT32_C(1) << 21)
/* True if a response that is still to be sent acknowledges psn. */
bool resp_res_cover(const struct qp *qp, uint32_t psn);
/* Takes the PD from responder resources of this XRC SRQ: the PD's number may be reused
 * soon. */
void resp_res_revoke(struct qp *qp, uint32_t srqn);
/* Builds up to n responses in PSN order. After a fault a NAK takes the place of the
 * rest; its PSN is in ack_psn. */
struct burst resp_res_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* mpe.c */
enum verdict resp_atomic_write(struct qp *qp, const struct pkt_view *view);
enum verdict resp_flush(struct qp *qp, const struct pkt_view *view);

/* flush.c: raises QP_FATAL, once: a completion found no room, and the QP is about to
 * fail. */
void qp_raise_fatal(struct qp *qp);

/* completer.c: completes the oldest request, with a CQE if it is signaled. Returns false
 * if the CQ overflowed. */
bool comp_oldest(struct qp *qp);

/* qp_xrc.c */
/* A request packet for a target QP. */
enum verdict xrc_rx(struct qp *qp, const struct pkt_view *view);
/* Detaches a target from its SRQ until the next message names one. */
void xrc_reset(struct qp *qp);

/* uc.c */
enum verdict uc_rx(struct qp *qp, const struct pkt_view *view);
/* Discards the message in progress. A receive taken from an SRQ completes with status and
 * vendor. */
enum verdict uc_discard(struct qp *qp, enum ibv_wc_status status, uint32_t vendor);
/* The packet before next_psn has been built. Completes its request if that was the last
 * packet: UC has no acknowledgements. */
void uc_sent(struct qp *qp);

/* ud.c */
enum drop_reason ud_admit(const struct qp *qp, const struct pkt_view *view);
enum verdict ud_rx(struct qp *qp, const struct pkt_view *view);
bool ud_wants_tx(const struct qp *qp);
unsigned ud_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* flush.c */
/* Moves the QP to ERR: everything outstanding completes with WR_FLUSH_ERR, in order. */
void qp_error(struct qp *qp);
/* Moves the QP to SQE: the send queue completes with WR_FLUSH_ERR, in order. */
void qp_sq_error(struct qp *qp);
/* In ERR and SQE: flushes requests posted since the QP entered the state. */
void qp_flush(struct qp *qp);
/* True if qp_flush() would complete requests. */
bool qp_has_flush(const struct qp *qp);
void qp_reset(struct qp *qp);
/* Puts a CQE for send request idx. Polling it frees the SQ slots up to idx. Returns false
 * if the CQ overflowed. */
bool qp_complete_send(
	struct qp *qp, uint32_t idx, enum ibv_wc_status status, uint32_t vendor);
/* Puts an error CQE for a receive. Returns false if the CQ overflowed. */
bool qp_complete_recv_error(
	struct qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t vendor);

#define ECN_CE 3 /* RFC 3168 5: ECN bits of the traffic class */

/* admit.c: rows 3 to 6 of docs/protocol.md 8.2. Returns DROP_none if the QP accepts the
 * packet. */
enum drop_reason qp_admit(const struct qp *qp, const struct pkt_view *view);

/* modify.c: resets the attributes that ibv_modify_qp(3) sets (IBA 10.3.1.1). */
void qp_attr_default(struct qp *qp);

/* qp_init.c: raises the event for the QP and for all its event listeners. Out of line:
 * inlined it costs its callers registers even when they raise nothing. */
void qp_event(struct qp *qp, enum qp_event event);

#endif
