/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of QPs: two devices of this process with several engines each. Pair i has a QP of engine i of
 * the sending device, which sends to a QP of engine i of the receiving device. One thread runs a pair:
 * it polls both engines, posts and polls the CQs (pair_pass()). Or threads only post and poll CQs
 * (pair_work()), while others poll the engines (pairs_engines_poll()). Uses public calls only. */
#ifndef PERF_PAIRS_H
#define PERF_PAIRS_H

#include <rocade/rocade.h>

#define PAIRS_MAX 16
#define PAIR_RECEIVES 1024 /* of a pair */
#define PAIR_SQ_DEPTH 512
#define PAIR_BURST 32        /* requests posted as one list */
#define PAIR_SIGNAL_EVERY 64 /* requests of a QP per signaled one */
#define PAIR_POLL 64         /* completions polled at once */
#define PAIR_SEND_BYTES 64   /* of a SEND */
#define PAIR_BYTES 4096      /* maximum size of a WRITE or READ */
#define PAIR_LINE 128        /* a cache line and the one that is prefetched with it */

/* Which queues all pairs share. Any other queue is in a thread domain, without locks. */
enum pairs_share { SHARE_NOTHING, SHARE_SRQ, SHARE_CQ };

struct pairs_conf {
	unsigned pairs;
	unsigned engines; /* pair i uses engine i % engines of both devices */
	enum pairs_share share;
	/* The QP of engine i sends to that of engine i + 1. Where queue i of one port receives
	 * what queue i of the other sends, each packet is then handed to another engine. */
	bool crossed;
};

/* A device, and what its engines share. */
struct pairs_device {
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq; /* SHARE_CQ; else NULL */
	struct ibv_srq *srq;              /* SHARE_SRQ; else NULL */
};

/* An engine, and what only its thread uses. */
struct pair_end {
	struct rocade_engine *engine;
	struct ibv_td *td;
	struct ibv_pd *pd; /* a parent domain with td */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* NULL: the QP has a receive queue */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem; /* to send from or to read into, the target of the peer, receives */
};

struct pair {
	unsigned index;
	struct pairs *all;
	struct pair_end sender, receiver;
	struct ibv_send_wr send_wr[PAIR_BURST];
	struct ibv_sge send_sge;
	struct ibv_recv_wr recv_wr[PAIR_POLL];
	struct ibv_sge recv_sge[PAIR_POLL];
	uint64_t posted;    /* requests of sender.qp */
	uint64_t received;  /* messages whose completion this pair's thread has polled */
	const char *failed; /* NULL: nothing has */
	/* requests of sender.qp that have completed; with SHARE_CQ other threads write it */
	uint64_t completed __attribute__((aligned(PAIR_LINE)));
} __attribute__((aligned(PAIR_LINE)));

struct pairs {
	struct pairs_conf conf;
	struct pairs_device sending, receiving;
	struct pair pair[PAIRS_MAX];
};

/* The ports are sending.port and receiving.port of pairs, open, with conf->engines engines or more.
 * The rest of pairs is zero. Returns NULL, or what failed. pairs_close() is required after both,
 * and leaves the ports open. */
const char *pairs_open(struct pairs *pairs, const struct pairs_conf *conf);
void pairs_close(struct pairs *pairs);

/* Takes a new QP to RTS, towards another one at this address. Returns NULL, or what failed. */
const char *pair_qp_connect(
	struct ibv_qp *qp, const struct ibv_qp *peer, const union ibv_gid *to);

/* Sets the requests that the pair posts from now on: IBV_WR_SEND of PAIR_SEND_BYTES (the default),
 * IBV_WR_RDMA_WRITE or IBV_WR_RDMA_READ of PAIR_BYTES. */
void pair_requests_set(struct pair *pair, enum ibv_wr_opcode opcode);
/* Posts a list of requests if post is set and the send queue has room; polls both engines and both
 * CQs, posts the receives again. Returns false after a failure: pair->failed. */
bool pair_pass(struct pair *pair, bool post);
/* The same without polling the engines: pairs_engines_poll() does that in another thread. */
bool pair_work(struct pair *pair, bool post);
/* Polls engine `engine` of both devices. */
void pairs_engines_poll(struct pairs *pairs, unsigned engine);

#endif
