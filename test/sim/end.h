/* SPDX-License-Identifier: BSD-3-Clause */
/* An end is a QP and its model. A connection is two ends (RC, UC) or one (UD). A life of
 * a connection lasts from one RESET to the next. */
#ifndef ROCADE_SIM_END_H
#define ROCADE_SIM_END_H

#include "host.h"
#include "win.h"

#define END_MSGS 128
#define END_WORDS 4
#define CONNS_MAX 12
#define ENDS_MAX (2 * CONNS_MAX)

struct msg {
	uint32_t seq;
	uint8_t op; /* enum ibv_wr_opcode */
	bool signaled, solicited, imm;
	bool done;     /* its completion, or a later one, was seen */
	bool ok;       /* and the status was success */
	bool received; /* it consumed a receive, whose completion was seen */
	bool uses_recv;
	bool inlined;
	uint8_t must_fail; /* the status it must complete with; 0: success */
	bool lost_remote;  /* its remote region was deregistered: it may fail */
	bool lost_local;
	bool stale; /* uses a window key that is invalid or belongs to another QP */
	uint32_t len;
	uint32_t imm_data;
	uint32_t rkey;   /* the key that is invalidated or bound */
	struct win *win; /* the window it binds, invalidates or goes through */
	uint64_t key;    /* of its content */
	uint64_t at;     /* time of the post; from its completion on, time of that */
	struct sgl local;
	struct sgl remote; /* buf.data NULL: none */
	struct end *to;    /* its receiver. `remote` is memory of the receiver's host */
	/* Atomics. */
	uint8_t word;
	bool counter;
	uint64_t before, after;
};

struct end {
	unsigned number;
	struct conn *conn;
	struct end *peer;
	struct host *host;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	unsigned pd, engine;
	struct cq_model *scq, *rcq;
	struct recv_model rq;    /* not used with an SRQ */
	struct recv_model *recv; /* the receive queue in use: &rq or an SRQ */
	uint32_t max_wr, max_sge, max_inline;
	bool sig_all;
	bool ex; /* posts by ibv_wr_*: the whole list or nothing */
	uint32_t qkey;
	uint32_t psn; /* first PSN of its requests in this life */

	/* Sends. Indices run freely since RESET. */
	struct msg msgs[END_MSGS];
	uint32_t posted;
	uint32_t done;          /* the next request whose completion may come */
	uint32_t retired;       /* all before it are freed, see end_retire() */
	uint32_t freed;         /* send queue slots before it are free */
	uint32_t last_signaled; /* the last signaled request + 1 */
	/* sequence numbers of the messages that consume a receive */
	uint32_t recv_msgs[END_MSGS];
	uint32_t recv_msgs_posted, recv_msgs_arrived;
	/* index in peer->recv_msgs up to which messages have arrived for sure */
	uint32_t must_have;

	uint32_t recv_next; /* the next receive to complete is this one or a later one */
	bool recv_bad;      /* a receive of it may have no access rights */
	bool may_rem_op;    /* the peer had a receive without access rights */
	bool failed;        /* an error completion was seen: flushes follow */
	bool may_flush;     /* it may be in ERR or SQE by now */
	bool may_retry;     /* RETRY_EXC is not a fault of the library */
	uint32_t last_wqe;  /* LAST_WQE_REACHED events that are due */
	uint32_t last_wqe_got; /* and that came */
	bool drain_wanted, drained;
	bool last_posted; /* the last request was posted: it completes all before it */

	struct win win[END_WINS]; /* over this host's memory, for the peer's requests */
	/* Words of this host that the peer's atomics change. */
	struct buf words;
	uint64_t word_value[END_WORDS]; /* value after all posted atomics are executed */
};

struct conn {
	unsigned number;
	enum ibv_qp_type type;
	bool used;
	bool up; /* both ends are RTS */
	/* an RC connection with XRC: end 0 is the initiator, end 1 the target */
	bool xrc;
	bool ipv6;
	bool fault; /* something happened that may move its QPs to ERR */
	bool big;   /* long messages now and then */
	unsigned life;
	enum ibv_mtu mtu;
	unsigned timeout, retry_cnt, rnr_retry, rnr_timer, max_rd[2];
	int access;
	bool stale;     /* packets of its last life may still arrive */
	uint64_t since; /* time of the last reset */
	unsigned ends;
	struct end end[2];
};

struct world {
	struct link link;
	unsigned hosts;
	struct host host[LINK_PORTS];
	unsigned conns;
	struct conn conn[CONNS_MAX];
	uint64_t next_key;
	bool small_cq;  /* a CQ is too small */
	bool quiescing; /* the seed ends: no new faults */
	/* resets, errors and drains of QPs, per mille of the operations */
	unsigned disruption;
	unsigned bad_requests; /* requests that must fail, per mille */
	bool perfect;          /* no loss and long timeouts: RC must not fail by itself */
};

extern struct world world;

/* Returns whether RC must not fail by itself. */
static inline bool
world_perfect(void)
{
	return world.perfect && !world.link.lossy;
}

/* Decides everything about a connection but its QPs, and adds its completions to the
 * sizes of the CQs. */
void conn_plan(struct conn *c, unsigned number, enum ibv_qp_type type, struct host *a,
	struct host *b);
/* Creates the QPs, in RESET. */
void conn_open(struct conn *c);
void conn_close(struct conn *c);
/* Moves one end a step from RESET towards RTS. Returns true once both are in RTS. */
bool conn_step(struct conn *c);
/* Moves both ends to RESET and accounts for everything that was in flight. */
void conn_reset(struct conn *c);

void end_modify(
	struct end *e, enum ibv_qp_state state, struct ibv_qp_attr *attr, int mask);
/* Notes that the connection's QPs may fail from now on. */
void conn_fault(struct conn *c);
/* Notes that the QP is in ERR, by a failure or by an application's ibv_modify_qp(). */
void end_in_error(struct end *e);
struct end *end_of_qp(const struct ibv_qp *qp);
struct end *end_of_number(unsigned number);

/* Frees the messages that can have no more effect. */
void end_retire(struct end *e);
/* Frees all messages. The QP is in RESET and nothing is in flight. */
void end_retire_all(struct end *e);

static inline struct msg *
end_msg(struct end *e, uint32_t seq)
{
	return &e->msgs[seq % END_MSGS];
}

static inline uint32_t
conn_mtu(const struct conn *c)
{
	return 128u << c->mtu;
}

/* An operation on eight aligned bytes. */
static inline bool
is_word(const struct msg *m)
{
	return m->op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       m->op == IBV_WR_ATOMIC_FETCH_AND_ADD || m->op == IBV_WR_ATOMIC_WRITE;
}

static inline bool
is_atomic(const struct msg *m)
{
	return m->op == IBV_WR_ATOMIC_CMP_AND_SWP || m->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool
is_initiator(const struct end *e)
{
	return e->conn->xrc && e == &e->conn->end[0];
}

static inline bool
is_target(const struct end *e)
{
	return e->conn->xrc && e == &e->conn->end[1];
}

/* A target with an XRC domain and an SRQ of its own. */
static inline bool
is_alone(const struct end *e)
{
	return is_target(e) && e->recv == &e->rq;
}

/* A local operation: executed in the send queue, without a packet. */
static inline bool
is_local(const struct msg *m)
{
	return m->op == IBV_WR_LOCAL_INV || m->op == IBV_WR_BIND_MW;
}

#endif
