/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end: a QP and what is known about it. A connection: two ends of RC or UC, or one of
 * UD, through its lives from RESET to RESET.
 */
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
	bool ok;       /* and it was a success */
	bool received; /* it has taken a receive, and that has completed */
	bool taker;
	bool inlined;
	uint8_t must_fail; /* the status it has to end with; 0: success */
	bool lost_remote;  /* a region of it was deregistered: it may fail */
	bool lost_local;
	bool stale; /* names a window that is gone or is another QP's */
	uint32_t len;
	uint32_t imm_data;
	uint32_t rkey;   /* invalidated or bound */
	struct win *win; /* this one, or the one that it goes through */
	uint64_t key;    /* of its content */
	uint64_t at;     /* posted */
	struct sgl local;
	struct sgl remote; /* buf.data NULL: none */
	struct end *to;    /* whose host remote is on; UD: the receiver */
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
	struct recv_model rq;    /* unless there is an SRQ */
	struct recv_model *recv; /* the one that is used */
	uint32_t max_wr, max_sge, max_inline;
	bool sig_all;
	bool ex; /* posts by ibv_wr_*: all of a list, or nothing */
	uint32_t qkey;
	uint32_t psn; /* where its requests start in this life */

	/* Sends: indices run freely since RESET. */
	struct msg msgs[END_MSGS];
	uint32_t posted;
	uint32_t done;            /* the next whose completion may come */
	uint32_t retired;         /* all before it are history */
	uint32_t freed;           /* slots before it are free again */
	uint32_t last_signaled;   /* index behind it */
	uint32_t taker[END_MSGS]; /* sequence numbers of those that take a receive */
	uint32_t takers, taken;
	uint32_t must_have; /* so many of peer->takers are known to have arrived */

	uint32_t recv_next; /* the receive that completes next is this or a later one */
	bool recv_bad;      /* a receive of it may have no rights */
	bool may_rem_op;    /* the peer had a receive without rights */
	bool failed;        /* an error completion was seen: flushes follow */
	bool may_flush;     /* it may be in ERR now, or SQE */
	bool may_retry;     /* RETRY_EXC is nobody's fault */
	uint32_t last_wqe;  /* LAST_WQE_REACHED: must come so often, */
	uint32_t last_wqe_got; /* came */
	bool drain_wanted, drained;
	bool last_posted; /* the one that makes all before it complete */

	struct win win[END_WINS]; /* of this host, for the peer */
	/* Words of this host that the peer's atomics change. */
	struct buf words;
	uint64_t word_value[END_WORDS]; /* when all that the peer posted is executed */
};

struct conn {
	unsigned number;
	enum ibv_qp_type type;
	bool used;
	bool up;  /* both ends are RTS */
	bool xrc; /* of RC: end 0 is an initiator, end 1 a target */
	bool ipv6;
	bool fault; /* something was done that may fail it */
	bool big;   /* long messages now and then */
	unsigned life;
	enum ibv_mtu mtu;
	unsigned timeout, retry_cnt, rnr_retry, rnr_timer, max_rd[2];
	int access;
	bool stale;     /* packets of its last life may still arrive */
	uint64_t since; /* of its state */
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
	bool tight;        /* a CQ is too small */
	bool calm;         /* the end comes: nothing new is broken */
	unsigned restless; /* how often QPs are reset, failed, drained, in a thousand */
	unsigned poison;   /* and requests made that must fail */
	bool perfect; /* nothing is lost and timeouts are long: RC must not fail by itself
		       */
};

extern struct world world;

/* RC must not fail by itself. */
static inline bool
world_perfect(void)
{
	return world.perfect && !world.link.lossy;
}

/* Decides all about a connection but its QPs, and tells the CQs what they must hold. */
void
conn_plan(struct conn *c, unsigned number, enum ibv_qp_type type, struct host *a,
	struct host *b);
/* Creates the QPs, in RESET. */
void
conn_open(struct conn *c);
void
conn_close(struct conn *c);
/* One step from RESET towards RTS on one of the ends; true when it was the last. */
bool
conn_step(struct conn *c);
/* Both ends to RESET, and everything that was under way is settled. */
void
conn_reset(struct conn *c);

void
end_modify(struct end *e, enum ibv_qp_state state, struct ibv_qp_attr *attr, int mask);
/* Something was done that may fail it, or both ends. */
void
conn_fault(struct conn *c);
/* It has come into ERR, by its own or by somebody's doing. */
void
end_in_error(struct end *e);
struct end *
end_of_qp(const struct ibv_qp *qp);
struct end *
end_of_number(unsigned number);

/* Frees the messages that are history. */
void
end_retire(struct end *e);
/* All messages are: the QP is in RESET and nothing is on its way. */
void
end_settle(struct end *e);

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

/* All that is of eight aligned bytes. */
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

/* A target with a domain and an SRQ of its own. */
static inline bool
is_alone(const struct end *e)
{
	return is_target(e) && e->recv == &e->rq;
}

/* Done where it stands in the send queue, and no packet. */
static inline bool
is_local(const struct msg *m)
{
	return m->op == IBV_WR_LOCAL_INV || m->op == IBV_WR_BIND_MW;
}

#endif
