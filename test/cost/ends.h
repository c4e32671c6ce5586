/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices of this process, joined by a loop, or by net_ring (COST_RING), or those of two daemons
 * whose ports are joined by a loop (COST_HOSTS); QP i of one is connected to QP i of the other. A failed
 * call prints a message and ends the program. */
#ifndef ROCADE_TEST_COST_ENDS_H
#define ROCADE_TEST_COST_ENDS_H

#include <rocade/rocade.h>

#define ENDS_QPS_MAX 256
#define ENDS_RECEIVES 1024
#define ENDS_SQ_DEPTH 64
#define ENDS_SLOT 4096 /* maximum message size in bytes */

struct end {
	struct rocade_port *port;
	struct rocade_engine *engine;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *mem; /* a slot to send from or to read into, a target slot, receives */
	struct ibv_qp *qp[ENDS_QPS_MAX];
	/* wr_id is the index. All are posted. */
	struct ibv_recv_wr recv_wr[ENDS_RECEIVES];
	struct ibv_sge recv_sge[ENDS_RECEIVES];
	bool mbufs; /* messages come in mbufs, and receives have no SGE */
	unsigned next_recv;
};

/* Where the payload of a request is before it is posted. */
enum ends_source {
	ENDS_MEMORY,   /* in registered memory */
	ENDS_MBUF,     /* in an mbuf, which is posted */
	ENDS_MBUF_COPY /* in an mbuf, which the program copies into registered memory */
};

struct ends {
	struct rocade_port *port[2];
	struct end client, server;
	unsigned qps;
};

/* Set ends->server.mbufs before, with COST_RING. */
void ends_open(struct ends *ends, unsigned qps, enum ibv_qp_type type);
void ends_close(struct ends *ends);

/* Of ends_loop.c, ends_ring.c or ends_hosts.c. */
void ends_ports_open(struct rocade_port_conf conf[2], struct rocade_port *port[2]);
void ends_port_close(struct rocade_port *port);
/* A pass of what moves the packets of this end when the application does not: its engine, or with
 * COST_HOSTS its daemon, because the application's calls run the engine of a client. */
void ends_pass(struct end *end);
void ends_srq_prepare(struct end *end);
/* A message has been received: returns which of recv_wr is to be posted again. */
#ifdef COST_RING
unsigned ends_message_take(struct end *end, const struct ibv_wc *wc);
/* Allocates an mbuf and posts it, or posts a copy of it in the memory of wr and frees it. */
void ends_mbuf_post(struct ibv_qp *qp, struct ibv_send_wr *wr, bool copy);
#else
static inline void
ends_mbuf_post(struct ibv_qp *qp, struct ibv_send_wr *wr, bool copy)
{
	(void)qp;
	(void)wr;
	(void)copy;
}

static inline unsigned
ends_message_take(struct end *end, const struct ibv_wc *wc)
{
	(void)end;
	return (unsigned)wc->wr_id;
}
#endif

/* Prints `what` and exits, unless `good`. */
void must(int good, const char *what);

#endif
