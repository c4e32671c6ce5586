/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair. A QP does no I/O and reads no clock: the four calls at the end drive
 * it, and whoever holds the QP's engine makes them. Control calls (qp_modify ...) run
 * with the gate of that engine held.
 */
#ifndef ROCADE_QP_QP_H
#define ROCADE_QP_QP_H

#include <sys/queue.h>

#include "base/stats.h"
#include "base/wheel.h"
#include "mem/key.h"
#include "queue/cq.h"
#include "queue/sq.h"
#include "queue/srq.h"
#include "queue/srq_table.h"
#include "wire/build.h"
#include "wire/parse.h"

#define QP_MAX_RD_ATOMIC 16 /* READs and atomics at once, either way */
#define QP_WINDOW 128       /* unacknowledged packets of one QP, at the most */

/* What a QP shares with the others of its engine and port. */
struct qp_env {
	struct key_table *keys;
	const struct srq_table *srqs; /* XRC SRQs */
	const uint8_t (*gids)[16]; /* the port's own addresses; all zero: none */
	unsigned gid_count;
	struct port_stats *stats; /* of the engine */
	uint64_t now;             /* of its turn: what completions are stamped with */
};

/* All QPs of an engine towards one destination: their unacknowledged packets together
 * stay within what a receive ring holds. */
struct peer {
	LIST_ENTRY(peer) link;
	TAILQ_HEAD(, qp) waiting; /* QPs that the window stops; the engine's */
	uint32_t inflight;
	uint32_t window;
	uint32_t qps; /* that name this peer */
	/* See quiet.c. */
	uint32_t quiet_qps; /* from so many on they ask less often */
	uint32_t quiet;     /* packets that nobody has asked for yet */
	uint8_t gid[16];
};

/* A path: what ibv_ah_attr says, with the source GID looked up. */
struct qp_path {
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t tclass;
	uint8_t sl;
	uint8_t static_rate;
	uint8_t port_num;
};

/* Early resending: one packet asks what has arrived, see probe.c. */
enum probe {
	PROBE_OFF,
	PROBE_DUE,  /* a copy of the packet una_psn is to be sent */
	PROBE_SENT, /* it was */
};

/* Where packets of a path go; the engine's. */
enum qp_route {
	ROUTE_PEER,
	ROUTE_SELF,  /* to an address of the port itself: they do not leave */
	ROUTE_GROUP, /* out, and to the other QPs here that are attached to the group */
};

/* What the requester knows (IBA 9.7.3 to 9.7.6). Indices run freely; PSNs are 24 bits. */
struct requester {
	uint32_t una_idx;     /* oldest request not completed */
	uint32_t next_idx;    /* request that next_psn is of, or the next to start */
	uint32_t started_idx; /* behind the last request that was given PSNs */
	uint32_t una_psn;     /* oldest packet not acknowledged */
	uint32_t next_psn;    /* next packet to send; goes back to resend */
	uint32_t sent_psn;    /* behind the highest packet ever sent */
	uint16_t unacked;     /* packets up to next_psn that are counted in peer->inflight */
	uint8_t reads;        /* READ requests and atomics sent and not answered */
	uint8_t probe;        /* enum probe */
	uint8_t fail_status;  /* != 0: request fail_idx fails with this once it is the
				 oldest */
	bool resync : 1;      /* una_psn was asked for again: its response may start anew */
	bool nak_handled : 1; /* una_psn was resent for a NAK: another one is an echo */
	bool asked : 1;       /* the packet built last asked for an acknowledgement */
	uint8_t probe_backoff;
	uint8_t retry_left;
	uint64_t ack_deadline;   /* TIME_NEVER: not running */
	uint64_t rnr_deadline;   /* TIME_NEVER: no RNR wait */
	uint64_t probe_deadline; /* TIME_NEVER: not running; see probe.c */
	uint64_t rtt_start; /* when rtt_psn was sent; TIME_NEVER: no sample under way */
	uint32_t rtt_psn;
	uint32_t srtt_ns; /* smoothed; 0: no sample yet */
	uint32_t pos_psn; /* the packet that pos is the start of */
	uint32_t place_psn; /* the READ response that place is for */
	struct sge_pos pos;
	struct sge_pos place;
	/* See quiet.c. */
	uint32_t quiet_psn; /* packets before it are not counted in unacked */
	uint32_t carry_psn; /* carried: until this is acknowledged */
	uint32_t fail_idx;
	uint16_t carried; /* packets of any QP that are counted in peer->inflight */
	uint8_t rnr_left;
	uint8_t fail_vendor;
};
static_assert(sizeof(struct requester) == 112, "with its neighbours in struct qp: two lines");

/* Asynchronous events a QP can raise. */
enum qp_event {
	QP_EVENT_FATAL,
	QP_EVENT_REQ_ERR,
	QP_EVENT_ACCESS_ERR,
	QP_EVENT_COMM_EST,
	QP_EVENT_SQ_DRAINED,
	QP_EVENT_LAST_WQE,
	QP_EVENT_COUNT
};

/* vendor_err of an error completion: which check it was. */
#define QP_VENDOR_ERRS(X)                                                                \
	X(NONE, "no more is known")                                                      \
	X(SEND_SGE, "an lkey, range or access of a send SGE")                            \
	X(RECV_SGE, "an lkey, range or access of a receive SGE")                         \
	X(RECV_SHORT, "the message is longer than the receive")                          \
	X(OPCODE_ORDER, "the peer's opcode does not follow the one before")              \
	X(OPERATION, "an operation that the QP does not allow")                          \
	X(RKEY, "an rkey, range or access of the peer's request")                        \
	X(DEPTH, "more READs and atomics at once than agreed")                           \
	X(ALIGNMENT, "an atomic's address is not a multiple of 8")                       \
	X(RESPONSE, "a READ or atomic response that does not fit its request")           \
	X(PACKET_LENGTH, "the peer's payload length does not fit opcode and path MTU")   \
	X(REMOTE_NAK, "the peer sent a NAK")                                             \
	X(BAD_SYNDROME, "the peer's AETH syndrome is reserved")                          \
	X(ACK_TIMEOUT, "no answer, retries spent")                                       \
	X(SEQ_RETRIES, "sequence NAKs, retries spent")                                   \
	X(RNR_RETRIES, "RNR NAKs, RNR retries spent")                                    \
	X(WINDOW, "a window that cannot be bound or invalidated")                        \
	X(WQE, "a work request that cannot be")                                          \
	X(FLUSHED, "the QP is in the error state")                                         \
	X(SRQN, "the peer names no SRQ of the XRC domain, or another one inside a message")

enum qp_vendor_err {
#define QP_VENDOR_ENUM(name, text) VENDOR_##name,
	QP_VENDOR_ERRS(QP_VENDOR_ENUM)
#undef QP_VENDOR_ENUM
};

enum resp_wait { /* what a responder that refuses packets waits for */
	RESP_OPEN,
	RESP_GAP, /* a sequence NAK is owed or sent: until ePSN comes (C9-114) */
	RESP_RNR, /* an RNR NAK is owed or sent: until ePSN comes again */
};

/* A READ, an atomic or a FLUSH that was executed: what is still to be answered, and the memory
 * that a duplicate of it is answered from. */
struct resp_job {
	uint32_t first_psn;
	uint32_t packets; /* of the response */
	uint32_t start;   /* packets: the response starts (again) here, */
	uint32_t next;    /* is this far, */
	uint32_t end;     /* and ends before this one, */
	uint32_t stop;    /* READ: with this byte of the request */
	uint32_t msn;
	uint32_t rkey;
	uint32_t len;
	uint64_t va;    /* READ: of the first byte */
	uint64_t value; /* atomic: what was there before */
	uint32_t kind : 8; /* enum op_kind */
	uint32_t srqn : 24; /* XRC: the SRQ it came for */
	uint32_t pd;    /* that rkey is of */
};
static_assert(sizeof(struct resp_job) == LINE_SIZE, "one each");

struct responder {
	uint32_t epsn;
	uint32_t msn;
	uint32_t ack_psn;  /* of what is owed */
	uint32_t gap_high; /* RESP_GAP: the highest packet that was dropped */
	uint8_t wait; /* enum resp_wait */
	uint8_t msg;  /* op_kind of the message in progress, OP_UNKNOWN between messages */
	bool wqe_held;     /* wqe is a receive that was taken and not completed */
	uint32_t received; /* bytes of the message so far */
	struct sge_pos pos;
	/* WRITE in progress. */
	uint32_t rkey;
	uint32_t left; /* bytes of its DMA length to come */
	uint64_t va;   /* where the next byte goes */
	/* READs and atomics, the last job_max of them, indices run freely. */
	uint32_t job_end;  /* behind the newest */
	uint32_t job_next; /* the oldest that is not answered whole, or to be answered
			      again */
	uint32_t job_done; /* behind the newest that has been answered whole */
	uint32_t job_max;  /* max_dest_rd_atomic */
	uint32_t job_held; /* that are remembered: those before job_end */
	uint32_t srqn;     /* XRC: of the SRQ that the latest message named, 0: none */
	struct resp_job *jobs;
};

struct qp {
	/* Dispatch, both directions; what a post looks at. */
	uint32_t qpn;
	uint32_t dest_qpn;
	uint8_t state;      /* enum ibv_qp_state; written under the gate, read by posting
			       threads */
	uint8_t type;       /* enum ibv_qp_type */
	uint8_t pmtu_shift; /* 8..12 */
	uint8_t op_base;    /* the service's bits of an opcode */
	bool on_ready; /* linked in the engine's ready list, or in its unresolved list */
	bool on_waiting;         /* linked in peer->waiting, whatever else it is linked in */
	bool on_unresolved : 1;  /* which of the two */
	bool resolved : 1;       /* hdr holds the next hop's MAC */
	bool draining : 1;
	uint8_t route : 2;       /* enum qp_route, when resolved */
	bool answering; /* there are READs and atomics to answer: resp_jobs_moved() */
	uint32_t net_generation; /* that hdr was resolved for; the engine's */
	uint16_t pkey;
	/* To the peer's requests: AETH syndrome to send + 1; 0: nothing. A sequence NAK takes
	 * its PSN when it leaves. Not beside answering: compilers would look at both in one
	 * load, which waits where one has just been stored. */
	uint8_t owed;
	uint8_t timeout; /* code, 0: none */
	struct qp_env *env;
	struct engine *engine;
	struct peer *peer;
	struct cq *recv_cq;
	/* An XRC target has none of its own: srq, recv_cq and pd are of the SRQ that the
	 * latest message named, NULL before and when that SRQ is gone. */
	struct srq *srq; /* NULL: rq */

	/* The engine's lists, whose neighbours write here, and what a turn needs beside. */
	TAILQ_ENTRY(qp) ready_link;
	struct wheel_timer timer;
	struct cq *send_cq;
	uint32_t pd;
	uint32_t access;

	struct requester req LINE_ALIGNED;
	LIST_HEAD(, qp_watch) watches; /* who else is told of events */
	uint32_t xrcd;                 /* XRC target: its domain's number */
	/* Posts refused with nothing signaled in the queue. */
	uint32_t sq_full_unsignaled;
	struct responder resp LINE_ALIGNED;
	struct recv_wqe *wqe; /* the responder's current receive; see qp_fit_receives() */
	struct path_hdr hdr;
	struct qp_stats stats;

	/* What wqe points to where receives have one SGE: a struct recv_wqe as far as that. */
	uint64_t wqe_one[(offsetof(struct recv_wqe, sge) + sizeof(struct sge)) / 8];
	struct recv_ring *rq; /* NULL: srq */
	TAILQ_ENTRY(qp) waiting_link;

	/* Cold, mostly. */
	struct qp_path path;
	uint32_t qkey;   /* UD */
	uint16_t groups; /* UD: multicast groups it is attached to */
	uint8_t min_rnr_timer;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool sqd_notify;
	bool comm_est_raised : 1;
	bool last_wqe_raised : 1;
	bool fatal_raised : 1; /* a completion found no room */
	uint8_t path_mtu;      /* enum ibv_mtu */
	uint8_t wqe_sges;      /* that wqe has room for */
	bool placed;           /* its memory is its creator's */
	uint16_t pkey_index;
	struct async_event events;

	struct sq sq;
};
static_assert(offsetof(struct qp, req) == 2 * LINE_SIZE, "dispatch and lists: a line each");
static_assert(offsetof(struct qp, ready_link) == LINE_SIZE, "the lists' line");
static_assert(offsetof(struct qp, stats) + offsetof(struct qp_stats, retransmitted) <=
		      7 * LINE_SIZE,
	"every packet counts in the line where its header ends");

/* One of the handles that share an XRC target QP (ibv_open_qp(3)); or a connection manager. */
struct qp_watch {
	LIST_ENTRY(qp_watch) link;
	struct async_event events;
};

struct qp_conf {
	enum ibv_qp_type type;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL: an RQ of its own */
	uint32_t pd;
	uint32_t xrcd;          /* XRC target: the domain's number */
	struct qp_watch *watch; /* XRC target: its first handle, or NULL */
	uint32_t max_send_wr, max_send_sge, max_inline;
	uint32_t max_recv_wr, max_recv_sge;
	bool sq_sig_all;
	bool unlocked; /* posts come from one thread: a thread domain */
	/* Zeroed memory for it, its creator's, behind which stands what a post looks at beside;
	 * NULL: it takes its own. */
	struct qp *at;
};

/* Attributes of ibv_modify_qp(3) as the core takes them; mask is IBV_QP_*. */
struct qp_attr {
	enum ibv_qp_state state, cur_state;
	enum ibv_mtu path_mtu;
	uint32_t rq_psn, sq_psn, dest_qpn, qkey;
	uint32_t access;
	uint16_t pkey_index;
	uint8_t port_num;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	bool en_sqd_async_notify;
	bool sq_draining; /* query only */
	struct qp_path path;
};

/* XRC: an initiator has no recv_cq and no receive queue, a target has neither CQs nor
 * queues nor a PD: what conf says of them is not looked at.
 * -EINVAL: caps out of range (SEND_MAX_*, SQ_MAX_WR, RECV_MAX_SGE); -EOPNOTSUPP: the
 * type; -ENOMEM. State RESET. events and object: for asynchronous events, events may be
 * NULL. */
int
qp_init(struct qp *qp, uint32_t qpn, const struct qp_conf *conf, const struct alloc *mem,
	struct event_queue *events, void *object);
/* Makes room for a receive of so many SGEs in hand: its SRQ's are to have as many. The
 * gates are held. -ENOMEM. */
int
qp_fit_receives(struct qp *qp, uint32_t max_sge);
/* Of a handle: where its events go, and what they name. */
void
qp_watch_init(struct qp_watch *watch, struct event_queue *events, void *object);
/* An XRC SRQ goes away, and with it what the QP took from it; a message for it that is not
 * complete will not be. The gates are held. */
void
qp_forget_srq(struct qp *qp, const struct srq *srq);
/* The QP is in no list and no engine knows it. Its CQEs have been purged. */
void
qp_fini(struct qp *qp);

/* Whether mask is allowed and complete for this transition (IBA 11.2.5.2, the tables of
 * ibv_modify_qp(3)): forbid by default. 0 or -EINVAL. */
int
qp_transition_check(
	enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/*
 * Checks everything, then applies: -EINVAL and nothing has changed. path_mtu_max is what
 * the port carries. A move to RTR leaves hdr unbuilt: the engine resolves the path. ERR
 * flushes at once, RESET clears all and purges the QP's CQEs.
 */
int
qp_modify(struct qp *qp, const struct qp_attr *attr, int mask, enum ibv_mtu path_mtu_max);
void
qp_query(const struct qp *qp, struct qp_attr *attr);

/* Whose window it sends within from now on; what is under way counts there. NULL: nobody's. */
void
qp_set_peer(struct qp *qp, struct peer *peer);

/* Its CQ has failed: ERR, and QP_FATAL once for what no completion can say. Not in RESET. */
void
qp_fail(struct qp *qp);

/* About to be destroyed: as RESET. */
void
qp_stop(struct qp *qp);

/* RTR or later with a new path, or a new MAC: rebuilds the header template. */
void
qp_set_headers(struct qp *qp, const struct path_addr *addr);

/* ---- The four calls ---- */

/* Whether the ICRC of a packet for this QP is right, of which the headers alone have been parsed.
 * Where it may (early.c), the payload is copied to its place by the same pass: view->placed. */
bool
qp_icrc_check(const struct qp *qp, struct pkt_view *view);

/* Takes in a packet whose DestQP is this QP, and whose ICRC is right. */
void
qp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);

/* Builds up to n packets that the QP owes into pkts (allocated frames with room for the
 * path MTU and all headers); returns how many. Owed acknowledgements come first. */
unsigned
qp_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);

/* The same but for what is owed to the peer's requests: that stays. Not UD, not in ERR and
 * SQE. */
unsigned
qp_tx_requests(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);

/* Whether an acknowledgement is all that qp_tx() would build. */
bool
qp_wants_ack_only(const struct qp *qp);

/* Whether qp_tx() would have something, apart from the peer's window. */
bool
qp_wants_tx(const struct qp *qp);

/* The time of qp_deadline() has come. */
void
qp_timeout(struct qp *qp, uint64_t now);

static inline uint64_t
qp_deadline(const struct qp *qp)
{
	uint64_t ack = RTE_MIN(qp->req.ack_deadline, qp->req.probe_deadline);

	return RTE_MIN(ack, qp->req.rnr_deadline);
}

/* Acknowledgements and READ responses, which no window holds back. */
static inline bool
qp_owes_response(const struct qp *qp)
{
	return qp->owed != 0 || qp->answering;
}

/* UD: where the next datagram goes, or NULL when there is none. The engine sees to it
 * that hdr is for that path before it calls qp_tx(). */
const struct ud_dest *
qp_next_dest(const struct qp *qp);

/* Stopped by the window of all QPs towards the peer. */
static inline bool
qp_peer_full(const struct qp *qp)
{
	return qp->peer != NULL && qp->peer->inflight >= qp->peer->window;
}

/* Nothing to send but requests, which the window holds back: not what an error flushes, nor
 * a probe, which is for what is in the window already. */
static inline bool
qp_held_back(const struct qp *qp)
{
	return unlikely(qp_peer_full(qp)) && !qp_owes_response(qp) &&
	       qp->state != IBV_QPS_ERR && qp->req.probe != PROBE_DUE;
}

/* With so many QPs that send to the peer that they ask less often, see quiet.c. */
static inline bool
qp_peer_crowded(const struct qp *qp)
{
	return qp->peer != NULL && qp->peer->qps >= qp->peer->quiet_qps;
}

/* Whether messages are acknowledged. */
static inline bool
qp_reliable(const struct qp *qp)
{
	return likely(qp->type == IBV_QPT_RC) || qp->type == IBV_QPT_XRC_SEND ||
	       qp->type == IBV_QPT_XRC_RECV;
}

static inline enum ibv_qp_state
qp_state(const struct qp *qp)
{
	return (enum ibv_qp_state)__atomic_load_n(&qp->state, __ATOMIC_RELAXED);
}

#endif
