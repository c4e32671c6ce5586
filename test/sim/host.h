/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: a device over a port of the link, opened like an application does, with PDs,
 * CQs and SRQs. The models of the queues are in queue.h. */
#ifndef ROCADE_SIM_HOST_H
#define ROCADE_SIM_HOST_H

#include "engine/engine.h"
#include "verbs/objects.h"

#include "arena.h"
#include "link.h"
#include "queue.h"

#define HOST_CQS 3
#define HOST_SRQS 2
#define HOST_XRC HOST_SRQS /* behind the others: the SRQ that XRC targets share */
#define HOST_PDS 2
#define HOST_ENGINES 2
#define HOST_COUNTERS 4

struct host_conf {
	unsigned engines;
	unsigned streams; /* passes, in thousandths, that predict that a stream goes on */
	unsigned tx_from_post; /* passes, in thousandths, whose next post may send */
	uint32_t peer_window;
	unsigned cqs, srqs;
	bool xrc; /* XRC targets may share an SRQ */
	struct cc_conf cc;
};

struct host {
	unsigned index;
	struct host_conf conf;
	struct link_port *wire;
	struct rocade_port *port;
	struct dev *dev;
	struct ibv_context *ctx;
	union ibv_gid gid4, gid6;
	struct ibv_pd *pd[HOST_PDS];
	struct arena arena;
	struct ibv_mr *mr[HOST_PDS]; /* covers the whole arena */
	struct cq_model cq[HOST_CQS];
	struct recv_model srq[HOST_SRQS + 1];
	uint64_t mem_bytes; /* ring memory in use */
	uint64_t kept;      /* time when the host last had frames inside */
	/* Words that every end increments. */
	struct buf counters;
	uint32_t counter_adds[HOST_COUNTERS]; /* posted */
	uint32_t counter_done[HOST_COUNTERS];
	uint8_t *counter_seen[HOST_COUNTERS]; /* values that atomics returned */
};

/* Opens the device and its PDs. CQs and SRQs follow once the QPs are planned. */
void host_open(
	struct host *h, struct link *l, unsigned index, const struct host_conf *conf);
/* Closes the device. QPs, CQs and SRQs are destroyed already. */
void host_close(struct host *h);

/* Runs one pass of one engine, or of all engines with work. Returns the packets moved. */
unsigned host_pass(struct host *h, unsigned engine);
unsigned host_run(struct host *h);
uint64_t host_deadline(struct host *h);

/* Returns whether frames are inside the host: not sent yet, or between its engines. */
bool host_has_frames(const struct host *h);
/* Runs passes until no frames are inside. */
void host_flush(struct host *h);

/* Returns SRQ n, the shared one last; NULL behind that. */
static inline struct recv_model *
host_srq(struct host *h, unsigned n)
{
	if (n < h->conf.srqs)
		return &h->srq[n];
	return h->conf.xrc && n == h->conf.srqs ? &h->srq[HOST_XRC] : NULL;
}

/* Reads all pending events and passes them to event_seen(). */
void host_events(struct host *h);
/* Adds the device's counters to the coverage. */
void host_stats(struct host *h);

#endif
