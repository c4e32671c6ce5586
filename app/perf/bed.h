/* SPDX-License-Identifier: BSD-3-Clause */
/* One end: port, device, QPs connected by construction, memory; and the calls that the
 * loops of rate.c and latency.c share. */
#ifndef PERF_BED_H
#define PERF_BED_H

#include <assert.h>

#include <rocade/rocade.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "link.h"

#define POLL_MAX 64
#define BED_QKEY 0x11
#define RTE_POLL_TURNS 1024 /* between two looks at the clock */

/* A QP. Many of them do not stay in the caches: two are a line. */
struct flow {
	struct ibv_qp *qp;
	uint64_t target; /* of the other end: memory, or a QPN for datagrams */
	uint64_t posted; /* the wr_id of the last request */
	uint32_t acked;  /* the last that has completed, its lower half */
	uint32_t quiet;  /* requests since the last signaled one */
};
static_assert(sizeof(struct flow) == 32, "half a line");

/* Requests that have not completed. */
static inline uint32_t
flow_outstanding(const struct flow *flow)
{
	return (uint32_t)flow->posted - flow->acked;
}

struct bed {
	const struct conf *conf;
	struct plan plan;
	int link;
	struct rocade_port *port;
	struct rocade_engine *engines[ENGINES_MAX]; /* that our loop runs */
	unsigned n_engines;
	unsigned lcore; /* that runs the engine instead; 0: none */
	struct ibv_context *ctx;
	struct ibv_pd *base_pd, *pd; /* pd: a parent domain of base_pd and td */
	struct ibv_td *td;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel; /* of recv_cq, with --events; else NULL */
	bool armed;
	bool caught; /* pingpong: a receive is to be posted again */
	struct ibv_ah *ah; /* with --ud */
	struct flow *flows;
	uint32_t qpn, peer_qpn; /* the first */
	union ibv_gid peer;
	uint8_t sgid_index;

	/* Memory: what is sent, what the other end writes or reads, and receives. */
	uint8_t *mem;
	size_t mem_len;
	struct ibv_mr *mr;
	uint64_t memory, qp_memory, srq_memory; /* of struct tally */
	uint64_t memory_before;
	uint64_t stride;      /* of a message */
	uint64_t recv_stride; /* and with what a datagram has in front */
	uint64_t slots;       /* of the target: QPs share it when they are many */
	uint8_t *source, *target, *recv;
	uint64_t remote_addr;
	uint32_t rkey;

	/* wr_id of a receive is its index here. */
	struct ibv_recv_wr *recv_wr;
	struct ibv_sge *recv_sge;
	uint64_t n_recv;

	struct ibv_send_wr wr[BURST_MAX]; /* each points to the next; and what they share: */
	unsigned flags;
	struct ibv_sge sge[BURST_MAX];

	uint64_t post_cycles, poll_cycles, repost_cycles; /* with -Dcycles=true */

	/* Of bed_look(). */
	uint32_t turns;
	uint64_t look_tsc, progress_tsc, progress, counted;
	bool gone; /* the other end */
	char reason[ERR_MAX];
};

/* bed.c. 0, or -1 with bed->reason. */
int
bed_open(struct bed *bed);
void
bed_close(struct bed *bed);
/* memory.c */
int
bed_memory(struct bed *bed);
/* Bytes that this process has allocated, of its own heap and of EAL's; not those mapped.
 */
uint64_t
memory_in_use(void);
/* connect.c: all QPs to RTS, receives posted. */
int
bed_connect(struct bed *bed);
/* events.c: its lcore runs the engine of an end that sleeps. */
int
events_launch(struct bed *bed);
/* Before others on the core of the engine, or no more. */
void
events_first(struct bed *bed, bool first);
/* Sleeps until a completion of recv_cq may be there. True: msg is one of the other end.
 */
bool
events_wait(struct bed *bed, struct msg *msg);
/* stats.c */
void
bed_tally(struct bed *bed, struct tally *tally);
/* Of a library built with -Dcycles=true: prints to stderr where they went. */
void
bed_cycles(struct bed *bed);

/* rate.c, latency.c: 0, or -1 with bed->reason. */
struct hist;
struct result;
int
rate_client(struct bed *bed, struct result *result);
int
rate_server(struct bed *bed);
int
latency_client(struct bed *bed, struct result *result);
int
latency_server(struct bed *bed);

void
bed_blame(struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A turn of each engine that is ours to run. */
static inline void
bed_poll(struct bed *bed)
{
	for (unsigned i = 0; i < bed->n_engines; i++)
		rocade_engine_poll(bed->engines[i]);
}

/* Nothing, and what is made of it too, but with -Dcycles=true. */
static inline uint64_t
bed_cycles_now(void)
{
#ifdef ROCADE_CYCLES
	return rte_rdtsc();
#else
	return 0;
#endif
}

/* Polls a CQ: as ibv_poll_cq(). */
static inline int
bed_poll_cq(struct bed *bed, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	uint64_t since = bed_cycles_now();
	int got = ibv_poll_cq(cq, n, wc);

	if (got > 0)
		bed->poll_cycles += bed_cycles_now() - since;
	return got;
}

/* Posts n requests to the flow, as many each time, from the chain that bed_open() made. False:
 * refused. */
static inline bool
bed_post(struct bed *bed, struct flow *flow, unsigned n)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr *last = &bed->wr[n - 1];
	uint64_t since;
	int rc;

	for (struct ibv_send_wr *wr = bed->wr; wr <= last; wr++) {
		wr->wr_id = ++flow->posted;
		wr->send_flags = bed->flags;
		if (++flow->quiet == bed->plan.signal_every) {
			wr->send_flags |= IBV_SEND_SIGNALED;
			flow->quiet = 0;
		}
		if (likely(bed->ah == NULL))
			wr->wr.rdma.remote_addr = flow->target;
		else
			wr->wr.ud.remote_qpn = (uint32_t)flow->target;
	}
	last->next = NULL;
	since = bed_cycles_now();
	rc = ibv_post_send(flow->qp, bed->wr, &bad);
	bed->post_cycles += bed_cycles_now() - since;
	if (unlikely(rc != 0)) {
		bed_blame(
			bed, "QP 0x%x refused a request: errno %d", flow->qp->qp_num, rc);
		return false;
	}
	return true;
}

/* Polls the send CQ; returns how many requests that came to, or -1. */
int64_t
bed_reap(struct bed *bed);
/* Receives that wc names, posted again. 0 or -1. */
int
bed_repost(struct bed *bed, const struct ibv_wc *wc, int n);

/* Every few turns: looks at the clock, and every 20 ms at the link. Returns true with a
 * message of the other end. Sets bed->gone when it left. */
bool
bed_look(struct bed *bed, struct msg *msg);

static inline bool
bed_turn(struct bed *bed, struct msg *msg)
{
	if (likely(++bed->turns % RTE_POLL_TURNS != 0))
		return false;
	return bed_look(bed, msg);
}

#endif
