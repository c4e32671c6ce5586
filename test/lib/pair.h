/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices joined in this process, with everything a test of verbs needs on both sides: QPs
 * i to i connected, one memory region, one SRQ or receive queues. Public calls only. Everything
 * is checked with cmocka's asserts; pair_close() ends by proving that nothing is left.
 */
#ifndef ROCADE_TEST_PAIR_H
#define ROCADE_TEST_PAIR_H

#include <pthread.h>
#include <stdbool.h>

#include <rocade/rocade.h>

#define PAIR_MAX_QPS 64
#define PAIR_MAX_ENGINES 4

struct pair_conf {
	unsigned engines;   /* 0: 1. QP i lives on engine i % engines, on both sides */
	unsigned qps;	    /* 0: 1 */
	unsigned srq_wr;    /* 0: no SRQ */
	unsigned srq_sge;   /* 0: 1 */
	unsigned cqe;	    /* 0: 4096 */
	struct ibv_qp_cap cap; /* 0: 64 WRs, 1 SGE */
	bool sig_all;
	bool ipv6;
	enum ibv_mtu mtu;   /* 0: 1024 */
	unsigned rnr_retry; /* 0: 7, for ever; 8: none */
	unsigned retry;	    /* 0: 7; 8: none */
	unsigned timeout;   /* 0: 14, 67 ms; 255: none */
	unsigned rnr_timer; /* 0: 1, 10 us */
	size_t bytes;	    /* of the region of each side; 0: 1 MiB */
	bool unconnected;   /* QPs stay in RESET */
	enum ibv_qp_type type; /* 0: RC; UC */
	uint64_t ops;	    /* send_ops_flags; 0: without */
	unsigned access;    /* of the QPs, when pair_connect() is called */
	uint64_t wc_flags;  /* CQs are made by ibv_create_cq_ex() with these; 0: plain ones */
	uint8_t depth;	    /* READs and atomics at once, both ways */
};

struct pair_side {
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[PAIR_MAX_QPS];
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
};

struct pair {
	struct pair_conf conf;
	struct pair_side a, b;
	unsigned fds; /* open before; 0: do not compare */
	pthread_t runner[PAIR_MAX_ENGINES];
	unsigned runners;
	bool stop;
};

void pair_open(struct pair *p, const struct pair_conf *conf);
void pair_close(struct pair *p);

/* One QP more on a side, as conf says, in RESET. The caller destroys it. */
struct ibv_qp *pair_qp(const struct pair_conf *conf, struct pair_side *s, unsigned engine);
/* RESET -> INIT -> RTR -> RTS, towards a QP of the other side. */
void pair_to_init(struct ibv_qp *qp);
void pair_to_rtr(const struct pair_conf *conf, struct ibv_qp *qp, const union ibv_gid *peer,
	uint32_t peer_qpn);
void pair_to_rts(const struct pair_conf *conf, struct ibv_qp *qp);
void pair_ud_to_rts(struct ibv_qp *qp, uint32_t qkey, uint32_t sq_psn);
void pair_to(struct ibv_qp *qp, enum ibv_qp_state state); /* state alone: RESET, ERR, SQD */
void pair_connect(struct pair *p, unsigned i);

/* A turn of every engine of both sides: packets moved. */
unsigned pair_poll(struct pair *p);
/* Turns until nothing moves any more. */
void pair_settle(struct pair *p);
/* Threads poll from now on, one for each engine of a side / no more. */
void pair_run(struct pair *p);
void pair_halt(struct pair *p);

/* Polls the CQ, and the engines unless a thread does, until n completions came; fails after 20 s. */
void pair_complete(struct pair *p, struct ibv_cq *cq, struct ibv_wc *wc, int n);
/* A while without a completion. */
void pair_quiet(struct pair *p, struct ibv_cq *cq);

/* One request over the side's region. offset into it. */
struct ibv_sge pair_sge(struct pair_side *s, size_t offset, uint32_t len);
int pair_send(struct pair_side *s, unsigned qp, uint64_t wr_id, size_t offset, uint32_t len,
	unsigned flags);
int pair_post_srq(struct pair_side *s, uint64_t wr_id, size_t offset, uint32_t len);
int pair_post_recv(struct pair_side *s, unsigned qp, uint64_t wr_id, size_t offset,
	uint32_t len);

/* The next asynchronous event, acknowledged; fails when none is raised within 5 s. */
struct ibv_async_event pair_event(struct pair *p, struct pair_side *s);
/* None is raised. */
void pair_no_event(struct pair *p, struct pair_side *s);

uint64_t pair_clock_ns(void);
uint64_t pair_stat(struct pair_side *s, const char *name);

#endif
