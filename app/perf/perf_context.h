/* SPDX-License-Identifier: BSD-3-Clause */
/* The context of one end: port, device, QPs, memory; and the calls shared by the loops of
 * rate.c and latency.c. */
#ifndef PERF_CONTEXT_H
#define PERF_CONTEXT_H

#include <assert.h>

#include <rocade/rocade.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "link.h"

#define POLL_MAX 64
#define PERF_QKEY 0x11
/* The wr_id of a request has the index of its conn above this bit, and below it the number of the request
 * among those of the conn. */
#define CONN_SHIFT 32
#define CHECK_PASSES 1024 /* passes between two reads of the clock */

/* One QP with its send state. With many QPs the array does not stay in cache, so two
 * elements share a line. */
struct conn {
	struct ibv_qp *qp;
	uint64_t dest;       /* at the peer: a memory address, or a QPN with --ud */
	uint64_t posted;     /* requests */
	uint32_t acked;      /* lower half of the wr_id of the last completed request */
	uint32_t unsignaled; /* requests posted since the last signaled one */
};
static_assert(sizeof(struct conn) == 32, "half a cache line");

/* Requests posted and not yet completed. */
static inline uint32_t
conn_outstanding(const struct conn *conn)
{
	return (uint32_t)conn->posted - conn->acked;
}

struct perf_verbs {
	struct ibv_context *context;
	struct ibv_pd *base_pd, *pd; /* pd: a parent domain of base_pd and td */
	struct ibv_td *td;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel; /* of recv_cq, with --events; else NULL */
	struct ibv_ah *ah;                /* with --ud */
};

/* The send buffer, the buffer that the peer writes or reads, receive buffers. */
struct perf_buffers {
	uint8_t *mem;
	size_t mem_len;
	struct ibv_mr *mr;
	uint64_t stride;      /* message size rounded up to 64 bytes */
	uint64_t recv_stride; /* plus room for the GRH of a datagram */
	uint64_t slots;       /* buffers of the target; many QPs share them */
	uint8_t *source, *target, *recv;
	uint64_t remote_addr;
	uint32_t rkey;
	/* Indexed by the wr_id of a receive. */
	struct ibv_recv_wr *recv_wr;
	struct ibv_sge *recv_sge;
	uint64_t n_recv;
};

/* Memory in use, reported in struct tally. */
struct perf_used {
	uint64_t memory, qp_memory, srq_memory;
	uint64_t memory_before;
};

/* State of perf_check(). */
struct perf_watch {
	uint32_t passes;
	uint64_t check_tsc, progress_tsc, progress, counted;
};

struct perf_context {
	const struct conf *conf;
	struct plan plan;
	int link;
	struct rocade_port *port;
	struct rocade_engine *engines[ENGINES_MAX]; /* polled by this program's loop */
	unsigned n_engines;
	unsigned lcore; /* worker lcore that runs the engine instead; 0: none */
	struct perf_verbs verbs;
	struct conn *conns;
	uint32_t *peer_qpns; /* of each QP's peer */
	union ibv_gid peer;
	uint8_t sgid_index;
	bool armed;
	bool repost_pending; /* pingpong: the last receive has to be reposted */
	struct perf_buffers buffers;
	struct perf_used used;

	/* linked as a list; all are posted with flags */
	struct ibv_send_wr wr[BURST_MAX];
	unsigned flags;
	struct ibv_sge sge[BURST_MAX];

	uint64_t post_cycles, poll_cycles, repost_cycles; /* only with -Dcycles=true */
	struct perf_watch watch;
	bool disconnected;   /* the peer disconnected, or the run has failed */
	enum exit_code code; /* of the program, if it fails now */
	char reason[ERR_MAX];
};

/* perf_open.c: return 0, or -1 with ctx->reason and ctx->code set. */
int perf_open(struct perf_context *ctx);
void perf_close(struct perf_context *ctx);
/* memory.c */
int perf_alloc_buffers(struct perf_context *ctx);
/* Returns the bytes that this process has allocated from the C heap and from EAL's heap.
 * Memory that it mapped itself is not included. */
uint64_t perf_memory_in_use(void);
/* perf_connect.c: moves all QPs to RTS and posts the receives. */
int perf_connect(struct perf_context *ctx);
/* perf_events.c: runs the engine of an end that sleeps on the worker lcore. */
int events_engine_launch(struct perf_context *ctx);
/* Stops it, if it was launched. */
void events_engine_stop(struct perf_context *ctx);
/* Sets or restores the priority of this thread over others on the engine's core. Returns 0, or -1
 * without permission. */
int events_set_priority(struct perf_context *ctx, bool first);
/* Sleeps until recv_cq may have a completion. Returns true if msg was received from the
 * peer. */
bool events_sleep(struct perf_context *ctx, struct msg *msg);
/* perf_stats.c */
void perf_fill_tally(struct perf_context *ctx, struct tally *tally);
/* The server's last message: fills in the counters of its tally and sends it. The client
 * then closes its port, and a memif must not be polled meanwhile (its PMD crashes). So an
 * engine that the worker lcore runs is stopped first, and the caller polls no more. Returns
 * 0, or -1 if the client disconnected. */
int perf_send_tally(struct perf_context *ctx, struct tally *tally);
/* With a library built with -Dcycles=true: prints to stderr where the cycles were
 * spent. */
void perf_print_cycles(struct perf_context *ctx);

/* rate.c, latency.c: return 0, or -1 with ctx->reason set. */
struct hist;
struct result;
int rate_client(struct perf_context *ctx, struct result *result);
int rate_server(struct perf_context *ctx);
int latency_client(struct perf_context *ctx, struct result *result);
int latency_server(struct perf_context *ctx);

/* perf_context.c: records the first error; later ones are its consequences. Returns -1. */
int perf_set_error(struct perf_context *ctx, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Polls each engine that this program's loop runs. */
static inline void
perf_poll_engines(struct perf_context *ctx)
{
	for (unsigned i = 0; i < ctx->n_engines; i++)
		rocade_engine_poll(ctx->engines[i]);
}

/* The TSC with -Dcycles=true; otherwise 0, so that the compiler removes the
 * accounting. */
static inline uint64_t
perf_cycles_now(void)
{
#ifdef ROCADE_CYCLES
	return rte_rdtsc();
#else
	return 0;
#endif
}

/* As ibv_poll_cq(), and counts its cycles. */
static inline int
perf_poll_cq(struct perf_context *ctx, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	uint64_t since = perf_cycles_now();
	int got = ibv_poll_cq(cq, n, wc);

	if (got > 0)
		ctx->poll_cycles += perf_cycles_now() - since;
	return got;
}

/* Posts n requests as one list, from the chain that perf_open() made. n must be the same
 * in every call, as the chain is cut there. Returns false if the post was refused. */
static inline bool
perf_post(struct perf_context *ctx, struct conn *conn, unsigned n)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr *last = &ctx->wr[n - 1];
	uint64_t id = (uint64_t)(conn - ctx->conns) << CONN_SHIFT;
	uint64_t since;
	int rc;

	for (struct ibv_send_wr *wr = ctx->wr; wr <= last; wr++) {
		wr->wr_id = id | (uint32_t)++conn->posted;
		wr->send_flags = ctx->flags;
		if (++conn->unsignaled == ctx->plan.signal_every) {
			wr->send_flags |= IBV_SEND_SIGNALED;
			conn->unsignaled = 0;
		}
		if (likely(ctx->verbs.ah == NULL))
			wr->wr.rdma.remote_addr = conn->dest;
		else
			wr->wr.ud.remote_qpn = (uint32_t)conn->dest;
	}
	last->next = NULL;
	since = perf_cycles_now();
	rc = ibv_post_send(conn->qp, ctx->wr, &bad);
	ctx->post_cycles += perf_cycles_now() - since;
	if (unlikely(rc != 0)) {
		perf_set_error(
			ctx, "posting to QP 0x%x failed: errno %d", conn->qp->qp_num, rc);
		return false;
	}
	return true;
}

/* Polls the send CQ. Returns 0, or -1 if a request has failed. */
int perf_reap(struct perf_context *ctx);
/* Reposts the receives that these completions consumed. Returns 0 or -1. */
int perf_repost(struct perf_context *ctx, const struct ibv_wc *wc, int n);

/* Every 20 ms: polls the link, and the send CQ for failed requests. Returns true if msg was
 * received from the peer. It is MSG_DISCONNECTED, and ctx->disconnected is set, when the
 * peer disconnected, a request failed, or nothing completed for STALL_S. */
bool perf_check(struct perf_context *ctx, struct msg *msg);

static inline bool
perf_tick(struct perf_context *ctx, struct msg *msg)
{
	if (likely(++ctx->watch.passes % CHECK_PASSES != 0))
		return false;
	return perf_check(ctx, msg);
}

#endif
