/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: a device over a port of the link, opened as an application would, with its
 * protection domains, CQs and SRQs. What these two must look like is in queue.h.
 */
#ifndef ROCADE_SIM_HOST_H
#define ROCADE_SIM_HOST_H

#include "engine/engine.h"
#include "verbs/objects.h"

#include "arena.h"
#include "link.h"
#include "queue.h"

#define HOST_CQS 3
#define HOST_SRQS 2
#define HOST_XRC HOST_SRQS /* behind them: the one that targets share */
#define HOST_PDS 2
#define HOST_ENGINES 2
#define HOST_COUNTERS 4

struct host_conf {
	unsigned engines;
	unsigned games; /* in a thousand turns: engines take what follows for a ball game */
	uint32_t peer_window;
	uint32_t quiet_qps;
	unsigned cqs, srqs;
	bool xrc; /* there is an SRQ for targets to share */
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
	struct ibv_mr *mr[HOST_PDS]; /* all of the arena */
	struct cq_model cq[HOST_CQS];
	struct recv_model srq[HOST_SRQS + 1];
	uint64_t mem_bytes; /* ring memory in use */
	uint64_t kept;      /* when frames were last inside */
	/* Words that everybody adds 1 to. */
	struct buf counters;
	uint32_t counter_adds[HOST_COUNTERS]; /* posted */
	uint32_t counter_done[HOST_COUNTERS];
	uint8_t *counter_seen[HOST_COUNTERS]; /* values returned */
};

/* The device and its PDs; CQs and SRQs come with the QPs' needs. */
void
host_open(struct host *h, struct link *l, unsigned index, const struct host_conf *conf);
/* QPs and queues are gone. */
void
host_close(struct host *h);

/* A turn of one engine / of all that have something to do: packets moved. */
unsigned
host_turn(struct host *h, unsigned engine);
unsigned
host_run(struct host *h);
uint64_t
host_deadline(struct host *h);

/* Frames inside: not sent yet, or on their way between engines. */
bool
host_has_frames(const struct host *h);
/* Turns until there are none. */
void
host_flush(struct host *h);

/* The SRQs there are, from 0 on; NULL: no more. */
static inline struct recv_model *
host_srq(struct host *h, unsigned n)
{
	if (n < h->conf.srqs)
		return &h->srq[n];
	return h->conf.xrc && n == h->conf.srqs ? &h->srq[HOST_XRC] : NULL;
}

/* Reads events until there are none, and hands them to event_seen(). */
void
host_events(struct host *h);
/* Counters of the device to what the sweep has seen. */
void
host_stats(struct host *h, uint64_t *drops);

#endif
