/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/qp tell each other, and nobody else. */
#ifndef ROCADE_QP_INTERNAL_H
#define ROCADE_QP_INTERNAL_H

#include "qp/qp.h"
#include "wire/psn.h"

/* qp->owed: the AETH syndrome, kept apart from "nothing". */
#define OWED(syndrome) ((uint8_t)((syndrome) + 1))
#define OWED_ACK OWED(AETH_ACK)
#define OWED_SEQ_NAK OWED(AETH_NAK_SEQ)

static inline uint32_t
qp_pmtu(const struct qp *qp)
{
	return 1u << qp->pmtu_shift;
}

/* Whether all packets of a request lie before psn. By its last one: a request can have
 * 2^23 packets, and its end is then as far ahead of its first PSN as behind it. */
static inline bool
note_before(const struct sq_note *note, uint32_t psn)
{
	return psn_diff(note_end(note) - 1, psn) < 0;
}

/* One READ request can take many PSNs. */
static inline bool
req_in_window(const struct qp *qp)
{
	return ((qp->req.next_psn - qp->req.una_psn) & PSN_MASK) < QP_WINDOW;
}

/* request.c */

/* What kinds of request there are: what they send, and how they are answered. */
enum wr_kind {
	WR_NONE,
	WR_SEND,
	WR_WRITE,
	/* Answered by a response of their own. */
	WR_READ,
	WR_ATOMIC,
	WR_ATOMIC_WRITE,
	WR_FLUSH,
	/* No packet: done where they stand in the queue, see local.c. */
	WR_LOCAL_INV,
	WR_BIND_MW,
};

/* Opcodes that newer headers than ours have, numbered as there. */
#define WR_OPCODE_FLUSH 14
#define WC_OPCODE_FLUSH 8

struct wr_row {
	uint8_t kind;         /* enum wr_kind; WR_NONE: not an opcode of ours */
	uint8_t wc;           /* enum ibv_wc_opcode */
	uint8_t opcode[2][2]; /* RC's: [first packet][last packet] of the message */
};

#define WR_ROWS 16
extern const struct wr_row wr_rows[WR_ROWS]; /* by enum ibv_wr_opcode */

static inline const struct wr_row *
wr_row(const struct send_wqe *wqe)
{
	return &wr_rows[wqe->opcode];
}

static inline bool
wr_answered(unsigned kind)
{
	return kind >= WR_READ && kind <= WR_FLUSH;
}

/* Builds the packet next_psn of the started request next_idx and moves behind it. final:
 * the pull ends with it, so it asks for an acknowledgement of all before. False when its
 * memory is not ours to read. */
bool
req_build(struct qp *qp, struct pkt *pkt, bool final);

/* ibv_qp_attr.qp_access_flags of newer headers, IBV_ACCESS_FLUSH_GLOBAL; the right of a
 * region is KEY_ACCESS_FLUSH_GLOBAL. Persistence is not had. */
#define QP_ACCESS_FLUSH_GLOBAL (1u << 8)

/* local.c */

/* Whether a request that was started is a local operation: it has no PSN. */
static inline bool
note_local(const struct sq_note *note)
{
	return note->first_psn == note_end(note);
}

/* Executes the request at next_idx, which is a local operation. */
enum ibv_wc_status
local_execute(struct qp *qp, const struct send_wqe *wqe);

/* requester.c */
void
req_reset(struct qp *qp, uint32_t psn);
bool
req_has_next(const struct qp *qp);
/* A READ asks for so many packets at once. */
uint32_t
req_read_chunk(const struct qp *qp);
unsigned
req_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);
/* The request at next_idx has so many packets. */
void
req_take_psns(struct qp *qp, const struct send_wqe *wqe, uint32_t packets);
/* What was sent counts, and is waited for. sent_psn: as it was before. */
void
req_sent(struct qp *qp, uint32_t sent_psn, uint64_t now);
/* Resends from this packet on (una_psn <= psn <= next_psn). */
void
req_rollback(struct qp *qp, uint32_t psn);
/* Brings peer->inflight up to date with una_psn and next_psn. */
void
req_account(struct qp *qp);
uint64_t
req_timeout_ns(const struct qp *qp);

/* How many packets up to next_psn count in peer->inflight. */
static inline uint32_t
req_charge(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	bool quiet = psn_diff(req->quiet_psn, req->una_psn) > 0;

	return (req->next_psn - (unlikely(quiet) ? req->quiet_psn : req->una_psn)) & PSN_MASK;
}

/* Packets were sent, and no answer to any of them is on its way. */
static inline bool
req_is_quiet(const struct qp *qp)
{
	return qp->req.unacked == 0 && qp->req.next_psn != qp->req.una_psn;
}

/* quiet.c */
/* There is a peer with many QPs: whether this one may send without asking. */
bool
quiet_allowed(const struct qp *qp);
/* Packets up to next_psn were sent, and the last of them did not ask. */
void
quiet_sent(struct qp *qp, uint64_t now);
/* The last one did ask, and there are quiet ones. */
void
quiet_carry(struct qp *qp);
/* What it carried has arrived, or will not. */
void
quiet_put_down(struct qp *qp);
/* From una_psn on all is counted: it is sent again, or never. */
void
quiet_end(struct qp *qp);
/* So long, and a probe asks. */
uint64_t
quiet_ns(const struct qp *qp);

/* probe.c */
/* The same for packets that nobody asked for. */
void
probe_quiet(struct qp *qp, uint64_t now);
/* Packets up to next_psn were sent, the last of them asking for an answer; those before
 * sent had been sent before. */
void
probe_sent(struct qp *qp, uint32_t sent, uint64_t now);
/* una_psn has moved; one: by one. */
void
probe_progress(struct qp *qp, bool one, uint64_t now);
/* Nothing is to be resent early: an RNR wait, an error, a rollback for another reason. */
void
probe_stop(struct qp *qp);
/* What was sent quietly is asked for now: by a copy of the oldest packet, or, where the answer to a READ
 * or an atomic is awaited first, when it has come or is late. */
void
probe_ask(struct qp *qp);
/* probe_deadline has come. */
void
probe_timeout(struct qp *qp, uint64_t now);

/* completer.c */
void
comp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);
void
comp_ack_timeout(struct qp *qp);
void
comp_check_drained(struct qp *qp);
/* The oldest request failed: its completion, then the QP goes to ERR. */
void
comp_fail(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor);

/* responder.c */
void
resp_reset(struct qp *qp, uint32_t psn);
void
resp_rx(struct qp *qp, const struct pkt_view *view);
/* Makes room for as many READs and atomics; -ENOMEM. */
int
resp_set_depth(struct qp *qp, uint32_t depth);

static inline bool
resp_jobs_pending(const struct qp *qp)
{
	return qp->resp.job_next != qp->resp.job_end;
}

/* After job_next or job_end were written: what is looked at far more often follows them. */
static inline void
resp_jobs_moved(struct qp *qp)
{
	qp->answering = resp_jobs_pending(qp);
}

/* A request that the connection does not survive: NAK, completion or event, ERR. */
void
resp_fatal(struct qp *qp, uint32_t psn, uint8_t syndrome, enum ibv_wc_status status,
	enum qp_vendor_err vendor);

/* The packet with the PSN that is expected. */
void
resp_request(struct qp *qp, const struct pkt_view *view);
/* Raises COMM_EST once. */
void
resp_established(struct qp *qp);

/* ack.c */
/* A request behind ePSN: something is missing. */
void
resp_gap(struct qp *qp, uint32_t psn);
/* A SEND or WRITE before ePSN. */
void
resp_duplicate(struct qp *qp, uint32_t psn);
/* Responses and acknowledgements in PSN order; returns how many of n packets. */
unsigned
resp_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* read.c: READ and atomic requests. */
void
resp_read(struct qp *qp, const struct pkt_view *view);
void
resp_atomic(struct qp *qp, const struct pkt_view *view);
/* Whether there is a place for one more; else the request has been dealt with. */
bool
resp_depth_ok(struct qp *qp, const struct pkt_view *view);
/* Executed: takes its PSNs and its place in the ring. Its response acknowledges what came
 * before, so nothing is owed for that any more. */
void
resp_job_add(struct qp *qp, const struct resp_job *job);
void
resp_read_again(struct qp *qp, const struct pkt_view *view);
/* The highest PSN that an acknowledgement of a duplicate at psn may name. */
uint32_t
resp_ack_limit(const struct qp *qp, uint32_t psn);
/* ePSN has moved on: what is so old that its PSNs will come round again is forgotten. */
void
resp_jobs_expire(struct qp *qp);
/* How many packets ePSN may move on in between. */
#define JOB_EXPIRE_EVERY (UINT32_C(1) << 21)
/* Whether a response that is still to be sent acknowledges psn. */
bool
resp_jobs_cover(const struct qp *qp, uint32_t psn);
/* What was read for an XRC SRQ is not any more: its PD's number may be another's soon. */
void
resp_jobs_revoke(struct qp *qp, uint32_t srqn);
unsigned
resp_jobs_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* place.c */
void
resp_atomic_write(struct qp *qp, const struct pkt_view *view);
void
resp_flush(struct qp *qp, const struct pkt_view *view);

/* QP_FATAL, once: the QP is about to fail for a completion that found no room. */
void
qp_raise_fatal(struct qp *qp);

/* The oldest request is done: its completion, if it is signaled. False: the CQ
 * overflowed. */
bool
comp_oldest(struct qp *qp);

/* xrc.c */
/* A request for a target. */
void
xrc_rx(struct qp *qp, const struct pkt_view *view);
/* Receives from no SRQ until the next message. */
void
xrc_reset(struct qp *qp);

/* uc.c */
void
uc_rx(struct qp *qp, const struct pkt_view *view);
/* Gives up the message in progress; status and vendor are for an SRQ's receive. */
void
uc_discard(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor);
/* The packet before next_psn has been built: nothing else will say that it is done. */
void
uc_sent(struct qp *qp);

/* ud.c */
enum drop_reason
ud_admit(const struct qp *qp, const struct pkt_view *view);
void
ud_rx(struct qp *qp, const struct pkt_view *view);
bool
ud_wants_tx(const struct qp *qp);
unsigned
ud_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* flush.c */
/* To ERR: everything outstanding completes with WR_FLUSH_ERR, in order. */
void
qp_error(struct qp *qp);
/* To SQE, with the same for the send queue alone. */
void
qp_sq_error(struct qp *qp);
/* In ERR and SQE: completes what was posted since. */
void
qp_flush(struct qp *qp);
bool
qp_has_flush(const struct qp *qp);
void
qp_reset(struct qp *qp);
/* One CQE for a send request; end frees the SQ up to there. */
bool
qp_complete_send(struct qp *qp, uint32_t idx, enum ibv_wc_status status, uint32_t vendor);
/* One CQE for a receive that went wrong. */
bool
qp_complete_recv_error(
	struct qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t vendor);

#define ECN_CE 3 /* RFC 3168 5: of the traffic class */

/* admit.c: rows 3 to 5 of the validation order; DROP_none lets the packet in. */
enum drop_reason
qp_admit(const struct qp *qp, const struct pkt_view *view);

/* modify.c: what ibv_modify_qp(3) sets is as in a QP just created (IBA 10.3.1.1). */
void
qp_attr_default(struct qp *qp);

/* qp.c: to the QP's listener and to every handle of a target. Out of line: inside those
 * who may have to say something it costs them registers when they have not. */
void
qp_event(struct qp *qp, enum qp_event event);

#endif
