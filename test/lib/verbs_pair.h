/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices joined by a loop in this process, with what a verbs test needs on both
 * sides: QPs (QP i of one side is connected to QP i of the other), a memory region, and
 * an SRQ or receive queues. Uses public calls only and checks them with cmocka's
 * assertions. pair_close() checks that no object is left.
 */
#ifndef ROCADE_TEST_VERBS_PAIR_H
#define ROCADE_TEST_VERBS_PAIR_H

#include <pthread.h>
#include <stdbool.h>

#include <rocade/rocade.h>

#define VERBS_PAIR_MAX_QPS 64
#define VERBS_PAIR_MAX_ENGINES 4

struct verbs_pair_conf {
	unsigned engines;      /* 0: 1. QP i lives on engine i % engines, on both sides */
	unsigned qps;          /* 0: 1 */
	unsigned srq_wr;       /* 0: no SRQ */
	unsigned srq_sge;      /* 0: 1 */
	unsigned cqe;          /* 0: 4096 */
	struct ibv_qp_cap cap; /* 0: 64 WRs, 1 SGE */
	bool sig_all;
	bool ipv6;
	enum ibv_mtu mtu;      /* 0: 1024 */
	unsigned rnr_retry;    /* 0: 7, without limit; 8: none */
	unsigned retry;        /* 0: 7; 8: none */
	unsigned timeout;      /* 0: 14, 67 ms; 255: none */
	unsigned rnr_timer;    /* 0: 1, 10 us */
	size_t bytes;          /* size of each side's region; 0: 1 MiB */
	bool unconnected;      /* QPs stay in RESET */
	enum ibv_qp_type type; /* RC or UC; 0: RC */
	uint64_t ops;          /* send_ops_flags; 0: the mask bit is not set */
	unsigned access;       /* access flags that pair_connect() gives the QPs */
	uint64_t wc_flags; /* not 0: CQs are created by ibv_create_cq_ex() with these */
	uint8_t depth;     /* max_rd_atomic and max_dest_rd_atomic */
	bool mr_fault_handler;
	bool flight_recorder;
	const struct rocade_cc_conf *cc; /* of both ports */
};

struct verbs_side {
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[VERBS_PAIR_MAX_QPS];
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
};

struct verbs_pair {
	struct verbs_pair_conf conf;
	struct verbs_side a, b;
	unsigned fds; /* descriptors open before pair_open(); 0: do not compare */
	pthread_t runner[VERBS_PAIR_MAX_ENGINES];
	unsigned runners;
	bool stop;
};

void pair_open(struct verbs_pair *p, const struct verbs_pair_conf *conf);
void pair_close(struct verbs_pair *p);

bool fd_readable(int fd);

/* Creates one more QP on a side, with the attributes of `conf`, in RESET. The caller
 * destroys it. */
struct ibv_qp *pair_qp_create(
	const struct verbs_pair_conf *conf, struct verbs_side *s, unsigned engine);
/* RESET to INIT, INIT to RTR and RTR to RTS, towards a QP of the other side. */
void pair_to_init(struct ibv_qp *qp);
void pair_to_rtr(const struct verbs_pair_conf *conf, struct ibv_qp *qp,
	const union ibv_gid *peer, uint32_t peer_qpn);
void pair_to_rts(const struct verbs_pair_conf *conf, struct ibv_qp *qp);
void pair_ud_to_rts(struct ibv_qp *qp, uint32_t qkey, uint32_t sq_psn);
/* Modifies only the state: RESET, ERR or SQD. */
void pair_modify_state(struct ibv_qp *qp, enum ibv_qp_state state);
void pair_connect(struct verbs_pair *p, unsigned i);

/* Polls every engine of both sides once. Returns the number of packets processed. */
unsigned pair_poll(struct verbs_pair *p);
/* Polls until nothing has moved for a while. */
void pair_drain(struct verbs_pair *p);
/* Starts a thread for each engine index, which polls that engine of both sides. */
void pair_threads_start(struct verbs_pair *p);
void pair_threads_stop(struct verbs_pair *p);

/* Polls the CQ until n completions came, and the engines unless threads do. Fails when the
 * limit of await.h is reached. */
void pair_poll_cq(struct verbs_pair *p, struct ibv_cq *cq, struct ibv_wc *wc, int n);
/* Polls the engines for a while and expects no completion. */
void pair_no_completion(struct verbs_pair *p, struct ibv_cq *cq);

/* An SGE over the side's region; `offset` is relative to its start. */
struct ibv_sge pair_sge(struct verbs_side *s, size_t offset, uint32_t len);
int pair_send(struct verbs_side *s, unsigned qp, uint64_t wr_id, size_t offset,
	uint32_t len, unsigned flags);
int pair_post_srq(struct verbs_side *s, uint64_t wr_id, size_t offset, uint32_t len);
int pair_post_recv(
	struct verbs_side *s, unsigned qp, uint64_t wr_id, size_t offset, uint32_t len);

/* Waits for the next asynchronous event, and acknowledges it. */
struct ibv_async_event pair_event(struct verbs_pair *p, struct verbs_side *s);
/* Polls the engines for a while and expects no asynchronous event. */
void pair_no_event(struct verbs_pair *p, struct verbs_side *s);

uint64_t pair_clock_ns(void);
uint64_t pair_stat(struct verbs_side *s, const char *name);

#endif
