/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The queue pair. A QP does no I/O and reads no clock: the calls at the end of this file
 * drive it. Their caller holds the lock of the QP's engine. Control calls (qp_modify()
 * ...) run with that lock held, too.
 */
#ifndef ROCADE_QP_QP_H
#define ROCADE_QP_QP_H

#include <sys/queue.h>

#include "base/answer_wait.h"
#include "base/base_stats.h"
#include "base/wheel.h"
#include "mem/key.h"
#include "qp/claim.h"
#include "qp/mbuf_state.h"
#include "qp/peer.h"
#include "queue/cq_gather.h"
#include "queue/sq.h"
#include "queue/srq_table.h"
#include "recovery/loss_state.h"
#include "wire/build.h"

struct req_times;

#define QP_MAX_RD_ATOMIC 16 /* READs and atomics outstanding, in each direction */
#define QP_MAX_UNACKED 128  /* unacknowledged packets of one QP, at most */

/* Shared by the QPs of an engine. */
struct qp_shared {
	struct key_table *keys;
	const struct srq_table *srqs; /* XRC SRQs */
	const uint8_t (*gids)[16];    /* the port's addresses; all zero: unused */
	unsigned gid_count;
	struct port_stats *stats;                              /* the engine's */
	bool direct_place_off, tlp_off, cnp_off, read_gap_off; /* switched off */
	bool flight_on; /* QPs note events in their flight recorders (flight.h) */
	uint64_t now;   /* time of the engine's pass: of completions, of CNPs */
	/* NULL: responders hold no packets, and requesters resend all for a NAK */
	struct hold_arena *hold;
	/* NULL: requesters keep no record of what is missing, and send all again */
	struct txmaps *txmaps;
	struct multipaths *multipaths; /* NULL: each QP has one path */
	struct peers *peers;     /* NULL: no peer is asked which extensions it has */
	struct req_times *times; /* NULL: no request is measured */
	/* Time of the last poll that emptied the receive queue and the hand-off rings: packets of this
	 * pass arrived later, but for those of a hand-off ring. A lower bound of round trips (congestion.c). */
	uint64_t polled_ns;
	struct cq_gather gather;   /* on while a burst is processed */
	struct flight_log *flight; /* NULL: no record is printed by itself */
	/* As tx_waits in port.h, of a QP; NULL: no answer is waited for. */
	bool (*answer_waits)(
		void *arg, const struct qp *qp, struct answer_wait *wait, uint64_t now);
	void *answer_arg;
	uint64_t answer_wait_ns;         /* for at most this long */
	struct answer_wait *answer_wait; /* by QPN & mask */
	uint32_t answer_wait_mask;
	struct qp_claim *claim; /* the engine's */
	struct rx_burst burst;
	struct mbuf_state mbuf;
};

/* A path: the attributes of ibv_ah_attr, with the source GID looked up. */
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

/* Where packets of a path go; set by the engine. */
enum qp_route {
	ROUTE_PEER,
	ROUTE_SELF, /* an address of this port: packets are looped back */
	/* sent, and looped back to the QPs of this port that are attached to the group */
	ROUTE_GROUP,
};

/* State of the requester (IBA 9.7.3 to 9.7.6). Indices run freely; PSNs have 24 bits. */
struct requester {
	uint32_t una_idx;     /* oldest request not completed */
	uint32_t next_idx;    /* request that next_psn belongs to, or the next to start */
	uint32_t started_idx; /* after the last request that has PSNs */
	uint32_t una_psn;     /* oldest packet not acknowledged */
	uint32_t next_psn;    /* next packet to send; goes back to resend */
	uint32_t sent_psn;    /* after the highest PSN ever sent */
	uint16_t unacked;     /* packets of SENDs and WRITEs in peer->send.inflight */
	/* requests with a response of their own (READ, atomic, ...), sent, not answered */
	uint8_t reads;
	uint8_t loss_state; /* enum loss_state; after req_reset() only loss_step() writes it */
	/* enum verdict; not VERDICT_GO: request fail_idx fails so once it is the oldest */
	uint8_t fail_verdict;
	/* una_psn was requested again: a READ response may start anew */
	bool read_restart : 1;
	/* una_psn was resent for a NAK or an implied NAK: further ones for the same loss are ignored */
	bool in_recovery : 1;
	bool draining : 1;   /* SQD: requests under way are still to be completed */
	bool stalled : 1;    /* a second probe was due: see congestion_probe() */
	bool rtt_counts : 1; /* the measurement is a sample of congestion control, too */
	bool rtt_idle : 1;   /* hardly anything was in flight to the peer at rtt_start */
	bool rtt_read : 1;   /* rtt_psn is that of a READ or the like */
	bool missing : 1;    /* the QP has a record of missing packets, see missing.h */
	uint8_t tlp_backoff;
	uint8_t retry_left;
	uint64_t ack_deadline; /* TIME_NEVER: not running */
	uint64_t rnr_deadline; /* TIME_NEVER: no RNR wait */
	uint64_t tlp_deadline; /* TIME_NEVER: not running; see tlp.c */
	uint64_t rtt_start; /* when rtt_psn was sent; TIME_NEVER: no sample under way */
	uint32_t rtt_psn;
	uint32_t srtt_ns; /* smoothed; 0: no sample yet */
	/* packet whose payload begins at pos in the SGEs of its request */
	uint32_t pos_psn;
	uint32_t read_pos_psn; /* READ response packet whose payload goes to read_pos */
	struct sge_pos pos;
	struct sge_pos read_pos;
	uint32_t fail_idx;
	uint8_t rnr_left;
	uint8_t rtt_una;  /* low bits of a PSN: congestion control is done up to it */
	uint16_t reading; /* packets of responses that were requested and have not come */
};
static_assert(2 * QP_MAX_UNACKED <= PSN_BITS, "a READ may exceed it by as much again");
static_assert(sizeof(struct requester) == 104, "with its neighbours: two cache lines");

/* vendor_err of an error completion: the check that failed. */
#define QP_VENDOR_ERRS(X)                                                                \
	X(NONE, "no further detail")                                                     \
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
	X(MEMORY_WINDOW, "a memory window that cannot be bound or invalidated")          \
	X(SRQ_ERROR, "the SRQ is in the error state")                                    \
	X(FLUSHED, "the QP is in the error state")                                       \
	X(SRQN, "the peer names no SRQ of the XRC domain, or another one inside a message")

enum qp_vendor_err {
#define QP_VENDOR_ENUM(name, text) VENDOR_##name,
	QP_VENDOR_ERRS(QP_VENDOR_ENUM)
#undef QP_VENDOR_ENUM
};

enum resp_wait { /* what the responder waits for; it executes no other packet meanwhile */
	RESP_OPEN,
	RESP_SEQ_NAK, /* sequence NAK pending or sent: until ePSN comes (C9-114) */
	RESP_RNR,     /* RNR NAK pending or sent: until ePSN comes again */
};

/* Parts of the first RES_PARTS packets of a READ can wait while another part is sent. */
#define RES_PARTS 64

/* Responder resource (IBA) of an executed READ, atomic, ATOMIC_WRITE or FLUSH: how much
 * of the response was sent, and what duplicates need. start, next and end count packets
 * from first_psn. */
struct resp_res {
	uint32_t first_psn;
	uint32_t packets; /* of the response */
	uint32_t start; /* packet to send first; not 0: a duplicate asked for the rest */
	uint32_t next;  /* packet to send next */
	uint32_t end;   /* the packet after the last one to send */
	uint32_t stop;  /* READ: offset from va of the end of the bytes to send */
	uint32_t msn;
	uint32_t rkey;
	uint32_t len;
	uint64_t va; /* READ: address of the first byte */
	union {
		uint64_t value; /* atomic: value before the operation */
		/* READ: packets to send again besides those up to end, a bit for each of the first RES_PARTS */
		uint64_t parts;
	};
	uint32_t kind : 8;  /* enum op_kind */
	uint32_t srqn : 24; /* XRC: SRQ that the request named */
	uint32_t pd;        /* PD of rkey */
};
static_assert(sizeof(struct resp_res) == LINE_SIZE, "one cache line");

struct responder {
	uint32_t epsn;
	uint32_t msn;
	uint32_t ack_psn; /* PSN of the pending response */
	/* RESP_SEQ_NAK: highest PSN that was dropped, or one before epsn: none was */
	uint32_t nak_high_psn;
	uint8_t wait;      /* enum resp_wait */
	uint8_t msg;       /* op_kind of the message in progress; OP_UNKNOWN: none is */
	bool wqe_held : 1; /* qp->wqe is a receive that was taken and is not completed */
	/* The last message was an RDMA WRITE without immediate data: no completion tells the application of it. */
	bool plain_write : 1;
	bool cnp_due : 1;  /* a congestion notification is to be sent, see cnp.h */
	bool sack_due : 1; /* a selective acknowledgement is to be sent, see hold.h */
	bool chained : 1;  /* qp->wqe has mbufs of a message, see mbuf_receive.h */
	bool counts : 1;   /* the QP has completion counters, see counting.h */
	uint8_t hold : 6;  /* 1 + index in hold_arena.holds; 0: the QP holds no packets */
	uint32_t received; /* bytes of the message so far */
	struct sge_pos pos;
	/* WRITE in progress. */
	uint32_t rkey;
	uint32_t left; /* bytes of its DMA length to come */
	uint64_t va;   /* where the next byte goes */
	/* Responder resources: a ring of the last res_max requests that took one. Indices run freely. */
	uint32_t res_end; /* after the newest */
	/* oldest that is not fully answered, or is to be answered again */
	uint32_t res_next;
	uint32_t res_done;  /* after the newest that has been fully answered */
	uint32_t res_max;   /* max_dest_rd_atomic */
	uint32_t res_count; /* valid resources: the newest ones */
	uint32_t srqn;      /* XRC: SRQ that the latest message named; 0: none */
	struct resp_res *res;
};

/* The engine's members of a QP. The links of its lists begin a cache line, because they
 * are written when an adjacent QP is linked or unlinked. */
struct qp_sched {
	bool on_ready; /* linked in the engine's ready list, or in its unresolved list */
	uint8_t on_blocked;      /* enum peer_blocked, independent of the other lists */
	bool on_unresolved : 1;  /* on_ready: it is the unresolved list */
	bool resolved : 1;       /* hdr holds the next hop's MAC */
	uint8_t route : 2;       /* enum qp_route, when resolved */
	bool engine_chosen : 1;  /* by the application: the QP stays there */
	uint32_t net_generation; /* net_generation() for which hdr was resolved */
	struct engine *engine;
	TAILQ_ENTRY(qp) ready_link;
	struct wheel_timer timer;
};

/* Attributes of ibv_modify_qp(3) that only requester, responder and queries read. */
struct qp_params {
	uint8_t timeout; /* code; 0: none */
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t path_mtu; /* enum ibv_mtu */
	bool sqd_notify;
	uint16_t pkey_index;
	uint32_t qkey; /* UD */
};
static_assert(sizeof(struct qp_params) == 16, "at the end of the requester's lines");

struct qp {
	/* Members read by dispatch, in both directions, and by posts. */
	uint32_t qpn;
	uint32_t dest_qpn;
	bool resp_due;      /* see resp_due_changed() */
	uint8_t type;       /* enum ibv_qp_type */
	uint8_t pmtu_shift; /* 8..12 */
	uint8_t op_base;    /* service bits of the opcodes */
	uint16_t pkey;
	/* enum ibv_qp_state; written under the engine lock. Posting threads read it
	 * relaxed: no load acquires it. The fence in qp_error() orders ERR. */
	uint8_t state;
	/* Pending response to the peer's requests: AETH syndrome + 1; 0: none. A sequence
	 * NAK takes its PSN when it is sent. Not next to qp->resp_due: compilers would
	 * read both in one load, which stalls if one of them has just been stored. */
	uint8_t aeth_pending;
	struct qp_shared *shared;
	struct peer *peer;
	struct cq *recv_cq;
	/* An XRC target has no srq, recv_cq and pd of its own: they are those of the SRQ
	 * that the latest message named. NULL before the first message, and after that
	 * SRQ was destroyed. */
	struct srq *srq; /* NULL: rq is used, or an XRC QP has none */
	struct qp_sched sched;
	struct cq *send_cq;
	uint32_t pd;
	uint32_t access;

	struct requester req LINE_ALIGNED;
	struct qp_params params;
	uint8_t extensions;   /* agreed by ECE: EXT_*, see wire/extensions.h */
	bool ece_set : 1;     /* extensions was set since RESET; false: it is 0 */
	bool sacks : 1;       /* the peer's QP has sent a selective acknowledgement */
	bool probed_read : 1; /* the last probe was of a READ or the like */
	bool read_repeated : 1; /* a missing range of a READ was asked for again since RESET */
	bool timed : 1;         /* a request of it is measured, see req_time.h */
	uint8_t txmap;          /* req.missing: index of the record */
	uint16_t multipath; /* 1 + index of its multipath state; 0: it has one path */
	uint8_t untimed; /* 1: the next request that starts may be measured, 2: the one behind it, ... */
	struct responder resp LINE_ALIGNED;
	/* the responder's current receive, with room for the largest that it may take */
	struct recv_wqe *wqe;
	struct path_hdr hdr;
	struct qp_stats stats;

	/* wqe points here if receives have at most one SGE. It has the size of a struct
	 * recv_wqe with one SGE. */
	uint64_t wqe_one[(offsetof(struct recv_wqe, sge) + sizeof(struct sge)) / 8];
	struct recv_ring *rq;         /* NULL: the QP has an SRQ, or receives nothing */
	TAILQ_ENTRY(qp) blocked_link; /* of on_blocked, see peer.h */

	/* Rarely used. */
	struct qp_path path;
	uint16_t groups; /* UD: multicast groups it is attached to */
	bool comm_est_raised : 1;
	bool last_wqe_raised : 1;
	bool fatal_raised : 1; /* QP_FATAL was raised: a completion found no room */
	bool cnp_timed : 1;    /* a CNP was sent since RESET */
	/* tail-loss probes since the last progress, up to 3: see congestion_probe() */
	uint8_t cc_probes : 2;
	uint8_t resend_shift : 2; /* copies due or sent for a NAK: peer_resend_shift() */
	uint8_t wqe_sges;         /* SGEs that wqe has room for; 0: no wqe */
	union {
		uint32_t xrcd;     /* XRC target: number of its domain */
		uint32_t counting; /* others: index of their counters, see counting.h */
	};
	uint32_t cnp_ns; /* cnp_timed: time of the last CNP, its low 32 bits */
	LIST_HEAD(, qp_listener) listeners; /* further event listeners, besides events */
	struct async_event events;

	struct sq sq;
};
static_assert(
	offsetof(struct qp, req) == 2 * LINE_SIZE, "dispatch and lists: a line each");
static_assert(offsetof(struct qp, sched.ready_link) == LINE_SIZE, "the lists' line");
static_assert(offsetof(struct qp, stats) + offsetof(struct qp_stats, retransmitted) <=
		      7 * LINE_SIZE,
	"counters of every packet share a line with the end of hdr");

/* An event listener of a QP: one of the handles that share an XRC target QP
 * (ibv_open_qp(3)), or a connection manager. */
struct qp_listener {
	LIST_ENTRY(qp_listener) link;
	struct async_event events;
};

struct qp_conf {
	enum ibv_qp_type type;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL: the QP has an RQ of its own */
	uint32_t pd;
	uint32_t xrcd; /* XRC target: number of its domain */
	/* XRC target: listener of its first handle, or NULL */
	struct qp_listener *listener;
	uint32_t max_send_wr, max_send_sge, max_inline;
	uint32_t max_recv_wr, max_recv_sge;
	bool sq_sig_all;
	bool unlocked;           /* posts come from one thread only: a thread domain */
	const struct alloc *mem; /* for dev_qp_init(); NULL: that of the device */
};

/* Attributes of ibv_modify_qp(3), independent of struct ibv_qp_attr; mask is IBV_QP_*. */
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

/* Initialises a QP in state RESET. XRC: an initiator has no recv_cq and no receive queue;
 * a target has no CQs, no queues and no PD. These members of conf are ignored.
 * Asynchronous events are raised on events, which may be NULL, for object. Returns 0;
 * -EINVAL: caps out of range (SEND_MAX_*, SQ_MAX_WR, RECV_MAX_SGE), or no CQ or domain;
 * -EOPNOTSUPP: the type; -ENOMEM. */
int qp_init(struct qp *qp, uint32_t qpn, const struct qp_conf *conf,
	const struct alloc *mem, struct event_queue *events, void *object);
/* An XRC SRQ is destroyed: takes it from the QP. An incomplete message for it will not
 * complete. All engine locks are held. */
void qp_forget_srq(struct qp *qp, const struct srq *srq);
/* The QP must be in no list (asserted) and hidden from the QP table, and its CQEs must
 * have been cleaned. */
void qp_fini(struct qp *qp);

/* Checks that mask is allowed and complete for this transition (IBA 11.2.5.2, the tables
 * of ibv_modify_qp(3)). Transitions not listed are forbidden. Returns 0 or -EINVAL. */
int qp_transition_check(
	enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/*
 * Checks everything, then applies. Returns 0; -EINVAL or -ENOMEM: nothing has changed.
 * path_mtu_max is the port's limit. A move to RTR does not fill in hdr: the engine
 * resolves the path. ERR flushes at once. RESET clears everything and cleans the QP's
 * CQEs, with the locks of qp_reset_locks() held. qp_modify_check() checks all but memory, and
 * applies nothing.
 */
int qp_modify_check(const struct qp *qp, const struct qp_attr *attr, int mask,
	enum ibv_mtu path_mtu_max);
int qp_modify(
	struct qp *qp, const struct qp_attr *attr, int mask, enum ibv_mtu path_mtu_max);
/* Takes a QP that has come from INIT to RTR, and has received nothing since, back to INIT. A QP that
 * has entered ERR since stays there. */
void qp_rtr_undo(struct qp *qp);
void qp_query(const struct qp *qp, struct qp_attr *attr);

/* Sets the peer whose window limits the QP. The QP's packets in flight are counted there
 * from then on. NULL: none. */
void qp_set_peer(struct qp *qp, struct peer *peer);

/* The QP's CQ has failed: moves the QP to ERR and raises QP_FATAL, once, because no
 * completion can report it. Not to be called in RESET. */
void qp_fail(struct qp *qp);
/* A completion of the QP that was gathered (queue/cq_gather.h) found no room in its CQ: as if that
 * had been found when it completed. receive: of a receive, else of a send request. */
void qp_completion_lost(struct qp *qp, bool receive);

/* Adds the locks that the caller of qp_reset() holds: those of the pollers of its CQs and
 * that of its SQ. An XRC target has neither. */
void qp_reset_locks(struct qp *qp, struct app_locks *set);
/* Moves the QP to RESET, also one that is about to be destroyed. */
void qp_reset(struct qp *qp);

/* ---- Called by the engine ---- */

/* Checks the ICRC of a packet for this QP of which only the headers have been parsed.
 * Where direct placement is allowed (direct_place.c) the same pass copies the payload to
 * its destination and sets view->payload_placed. Returns true if the ICRC is right. */
bool qp_icrc_check(const struct qp *qp, struct pkt_view *view);

/* Takes in a packet whose DestQP is this QP, and whose ICRC is right. */
void qp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);

/* Builds up to n packets into pkts (allocated frames with room for the path MTU and all
 * headers). Returns the number built. Pending responses come first, in PSN order. While
 * the QP has requests to send, responses take half of n at most, and one if n is 1. */
unsigned qp_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);
/* As qp_tx(), for a QP in RTS, without responses. */
unsigned qp_tx_requests(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now);

/* True if a packet is to be sent again. No window limits it: it is counted already. */
static inline bool
qp_copy_due(const struct qp *qp)
{
	return loss_is_due(qp->req.loss_state);
}

/* True if qp_tx() would have something to do, regardless of the peer window. */
bool qp_wants_tx(const struct qp *qp);

/* Handles the expiry of qp_deadline(). */
void qp_timeout(struct qp *qp, uint64_t now);

static inline uint64_t
qp_deadline(const struct qp *qp)
{
	uint64_t ack = RTE_MIN(qp->req.ack_deadline, qp->req.tlp_deadline);

	return RTE_MIN(ack, qp->req.rnr_deadline);
}

/* True if acknowledgements, READ responses or a CNP are pending. No window limits them. */
static inline bool
qp_has_response_pending(const struct qp *qp)
{
	return qp->aeth_pending != 0 || qp->resp_due;
}

/* UD: the destination of the next datagram; NULL: there is none. The engine sets hdr to
 * that path before it calls qp_tx(). */
const struct ud_dest *qp_next_dest(const struct qp *qp);

/* True if messages are acknowledged. */
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
