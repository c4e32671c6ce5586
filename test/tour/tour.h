/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tour of every service and opcode between two programs: plain verbs, so that the same
 * source runs over any device. host.h is all that differs. Both ends walk the same cells;
 * in each, once per direction, one is active (it posts the requests) and one passive.
 */
#ifndef ROCADE_TOUR_H
#define ROCADE_TOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define TOUR_SLOT (size_t)((1 << 20) + 4096) /* the longest message and a guard */
#define TOUR_SLOTS 4
#define TOUR_HALF (TOUR_SLOT * TOUR_SLOTS) /* sources; behind them, destinations */
#define TOUR_BYTES (2 * TOUR_HALF)
#define TOUR_WRS 64
#define TOUR_QKEY 0x11223344
#define TOUR_WAIT_S 20 /* for a completion */
#define TOUR_WAIT_MOST_S 180
#define TOUR_SKIPS 16
#define TOUR_GRH 40

/* What one end tells the other about a connection. */
struct tour_end {
	uint32_t qpn;
	uint32_t psn;
	uint32_t srqn;
	uint32_t rkey;
	uint64_t addr;
	uint8_t gid[16];
	uint32_t extra[4]; /* what a cell needs */
};

/* What a cell's QPs are like. */
struct link_conf {
	enum ibv_qp_type type;
	bool srq;
	uint64_t ops;   /* IBV_QP_EX_WITH_*; 0: a plain QP */
	bool impatient; /* few retries */
	bool stubborn;  /* seven, each soon */
	bool finite;    /* as many as any end takes for a number: six */
	/* The passive end's: */
	int refused;   /* access that its QP does not allow */
	int takes;     /* READs and atomics at a time; 0: four, -1: none */
	bool half_mtu; /* a path MTU of half the size */
	bool waits;    /* it stays in RTR */
};

struct tour {
	bool server;
	bool active; /* in this cell */
	int sock;
	const char *device_name;
	const char *only;             /* cells whose name contains it; NULL: all */
	const char *skip[TOUR_SKIPS]; /* cells of these names */
	unsigned skip_count;
	unsigned wait_s;
	bool copies;      /* the wire doubles and disorders packets */
	int gid_index;    /* -1: the first of RoCE v2 */
	unsigned ifindex; /* the interface of that GID */
	bool verbose;
	struct ibv_context *context;
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
	enum ibv_mtu mtu_code; /* of both */
	uint32_t mtu;
	uint32_t mtu_most; /* 0: what the ports have */
	uint32_t seed;     /* the same on both sides, another for each cell */
	/* The cell's connection. */
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct link_conf conf;
	struct tour_end own, peer;
	char why[256];
	bool peer_gave_up;
	bool lost; /* the other end */
	unsigned passed, failed, skipped;
};

/* A cell: NULL, or why it failed (in t->why, as a rule). Runs at both ends. */
typedef const char *(*tour_fn)(struct tour *t, const void *arg);
/* Why this device cannot: NULL when it can. */
typedef const char *(*tour_need)(struct tour *t, const void *arg);
/* Every device can. */
const char *
need_nothing(struct tour *t, const void *arg);

/* One cell, in both directions: prints a line for each. */
void
tour_cell(struct tour *t, const char *name, tour_need need, tour_fn fn, const void *arg);
/* t->why from a format; returns it. */
const char *
tour_fail(struct tour *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TRY(call)                                                                        \
	do {                                                                             \
		const char *try_ = (call);                                               \
		if (try_ != NULL)                                                        \
			return try_;                                                     \
	} while (0)
#define NEED(t, condition)                                                               \
	do {                                                                             \
		if (!(condition))                                                        \
			return tour_fail(t, "line %d: %s", __LINE__, #condition);        \
	} while (0)

/* ---- oob.c: out of band ---- */

int
oob_listen(const char *address, unsigned port);
int
oob_connect(const char *address, unsigned port);
/* Sends len bytes (OOB_MAX at the most) and receives as many; NULL or what went wrong,
 * for example that the other end has given the cell up. */
#define OOB_MAX 160
const char *
oob_swap(struct tour *t, const void *mine, void *theirs, size_t len);
/* Both are here. */
const char *
tour_sync(struct tour *t);
/* The end of a cell: good or not. NULL when it was good there too. */
const char *
oob_end(struct tour *t, bool good);

/* ---- link.c: QPs and data ---- */

int
link_to_init(struct tour *t, struct ibv_qp *qp);
int
link_to_rtr(struct tour *t, struct ibv_qp *qp, const struct tour_end *peer);
int
link_to_rts(struct tour *t, struct ibv_qp *qp);
struct ibv_ah *
link_ah(struct tour *t, const uint8_t gid[16]);
struct ibv_ah *
link_ah_of(struct tour *t, const uint8_t gid[16], uint8_t hops, uint8_t class,
	uint32_t flow);
/* t->own, but for the QP. */
void
link_own(struct tour *t);
/* t->qp at both ends, connected; and what belongs to it. */
const char *
link_open(struct tour *t, const struct link_conf *conf);
void
link_close(struct tour *t);

uint8_t *
link_source(struct tour *t, unsigned slot);
uint8_t *
link_target(struct tour *t, unsigned slot);
/* The peer's target slot. */
uint64_t
link_remote(struct tour *t, unsigned slot);

/* A pattern that depends on cell and slot. */
void
data_fill(struct tour *t, uint8_t *at, size_t len, unsigned slot);
void
data_clear(uint8_t *at, size_t len);
/* The bytes, and an untouched guard behind them. */
const char *
data_check(struct tour *t, const uint8_t *at, size_t len, unsigned slot);
/* What byte i of the pattern is. */
uint8_t
data_byte(const struct tour *t, size_t i, unsigned slot);

const char *
link_recv(struct tour *t, uint64_t wr_id, uint8_t *at, uint32_t len);
const char *
link_send(struct tour *t, struct ibv_send_wr *wr);
/* The next completion, of any status. */
const char *
link_poll(struct tour *t, struct ibv_cq *cq, struct ibv_wc *wc);
/* The next completion: success, and this wr_id. */
const char *
link_done(struct tour *t, struct ibv_cq *cq, uint64_t wr_id, struct ibv_wc *wc);
/* In so many milliseconds: 1, or 0 when none came, -1 for an error (t->why). */
int
link_poll_for(struct tour *t, struct ibv_cq *cq, struct ibv_wc *wc, unsigned ms);
/* Whether a request that must fail has this status, or on a wire that loses packets
 * RETRY_EXC_ERR: who has sent a NAK that is lost is in ERR, and silent. */
bool
link_refused(const struct tour *t, enum ibv_wc_status got, enum ibv_wc_status want);
/* None comes for a while. */
const char *
link_quiet(struct tour *t, struct ibv_cq *cq);
/* An asynchronous event of this type comes; earlier ones are forgotten. */
const char *
link_event(struct tour *t, enum ibv_event_type want);
void
link_events_forget(struct tour *t);
/* Another memory region over t->mem. */
struct ibv_mr *
link_mr(struct tour *t, int access);

/* ---- cells ---- */

void
cells_transfer(struct tour *t);

void
cells_rc(struct tour *t);
void
cells_errors(struct tour *t);
void
cells_events(struct tour *t);
void
cells_stream(struct tour *t);
void
cells_datagram(struct tour *t);
void
cells_memory(struct tour *t);
void
cells_xrc(struct tour *t);
void
cells_wr(struct tour *t);

#endif
