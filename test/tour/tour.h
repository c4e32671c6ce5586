/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A conformance matrix: every service and opcode between two programs. Plain verbs, so
 * that the same source runs over any device; host.h is the only difference. Both ends run
 * the same cells in the same order. In each cell, once per direction, one end is active
 * (it posts the requests) and the other one passive.
 */
#ifndef ROCADE_TOUR_H
#define ROCADE_TOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define TOUR_SLOT (size_t)((1 << 20) + 4096) /* the longest message and a guard */
#define TOUR_SLOTS 4
#define TOUR_HALF (TOUR_SLOT * TOUR_SLOTS) /* sources; the destinations follow */
#define TOUR_BYTES (2 * TOUR_HALF)
#define TOUR_WRS 64
#define TOUR_QKEY 0x11223344
#define TOUR_WAIT_S 20 /* for a completion */
#define TOUR_WAIT_MOST_S 180
#define TOUR_SKIPS 16
#define TOUR_GRH 40

/* Sent by each end to the other about a connection. */
struct tour_end {
	uint32_t qpn;
	uint32_t psn;
	uint32_t srqn;
	uint32_t rkey;
	uint64_t addr;
	uint8_t gid[16];
	uint32_t extra[4]; /* contents depend on the cell */
};

/* The QPs of a cell. */
struct link_conf {
	enum ibv_qp_type type;
	bool srq;
	uint64_t ops;   /* IBV_QP_EX_WITH_*; 0: a plain QP */
	bool impatient; /* few retries */
	bool stubborn;  /* seven retries with a short timeout */
	/* six retries, the most that every device counts (seven may mean infinite) */
	bool finite;
	/* The passive end's: */
	int refused;   /* access rights that its QP lacks */
	int takes;     /* concurrent READs and atomics; 0: four, -1: none */
	bool half_mtu; /* its path MTU is half of the active end's */
	bool waits;    /* it stays in RTR */
};

struct tour {
	bool server;
	bool active; /* in this cell */
	int sock;
	const char *device_name;
	const char *only;             /* only cells whose name contains this; NULL: all */
	const char *skip[TOUR_SKIPS]; /* names of the cells to skip */
	unsigned skip_count;
	unsigned wait_s;
	bool copies;      /* the wire duplicates and reorders packets */
	int gid_index;    /* -1: the first one of RoCE v2 */
	unsigned ifindex; /* interface of that GID */
	bool verbose;
	struct ibv_context *context;
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
	enum ibv_mtu mtu_code; /* the smaller one of both ends */
	uint32_t mtu;
	uint32_t mtu_most; /* upper limit of the path MTU; 0: none */
	uint32_t seed;     /* the same at both ends, different for each cell */
	/* The connection of the cell. */
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct link_conf conf;
	struct tour_end own, peer;
	char why[256];
	bool peer_gave_up;
	bool lost; /* connection to the other end lost */
	unsigned passed, failed, skipped;
};

/* A cell. Runs at both ends. Returns NULL or the reason of the failure, usually
 * t->why. */
typedef const char *(*tour_fn)(struct tour *t, const void *arg);
/* Returns NULL if the device can run the cell, otherwise the reason. */
typedef const char *(*tour_need)(struct tour *t, const void *arg);
/* For cells that every device can run. */
const char *
need_nothing(struct tour *t, const void *arg);

/* Runs a cell in both directions and prints a line for each. */
void
tour_cell(struct tour *t, const char *name, tour_need need, tour_fn fn, const void *arg);
/* Formats t->why and returns it. */
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
/* Sends `len` bytes (at most OOB_MAX) and receives as many. Returns NULL or the reason of
 * a failure, for example that the other end has given up the cell. */
#define OOB_MAX 160
const char *
oob_swap(struct tour *t, const void *mine, void *theirs, size_t len);
/* Waits until both ends have called it. */
const char *
tour_sync(struct tour *t);
/* Ends a cell. Returns NULL if it succeeded at both ends. */
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
/* Fills t->own, except for the QPN. */
void
link_own(struct tour *t);
/* Creates and connects t->qp at both ends. */
const char *
link_open(struct tour *t, const struct link_conf *conf);
void
link_close(struct tour *t);

uint8_t *
link_source(struct tour *t, unsigned slot);
uint8_t *
link_target(struct tour *t, unsigned slot);
/* Address of the peer's target slot. */
uint64_t
link_remote(struct tour *t, unsigned slot);

/* Fills in a pattern that depends on the cell and the slot. */
void
data_fill(struct tour *t, uint8_t *at, size_t len, unsigned slot);
void
data_clear(uint8_t *at, size_t len);
/* Checks the bytes, and that the guard behind them is unchanged. */
const char *
data_check(struct tour *t, const uint8_t *at, size_t len, unsigned slot);
/* Returns byte i of the pattern. */
uint8_t
data_byte(const struct tour *t, size_t i, unsigned slot);

const char *
link_recv(struct tour *t, uint64_t wr_id, uint8_t *at, uint32_t len);
const char *
link_send(struct tour *t, struct ibv_send_wr *wr);
/* Waits for the next completion, of any status. */
const char *
link_poll(struct tour *t, struct ibv_cq *cq, struct ibv_wc *wc);
/* Waits for the next completion, which must be a success with this wr_id. */
const char *
link_done(struct tour *t, struct ibv_cq *cq, uint64_t wr_id, struct ibv_wc *wc);
/* Waits `ms` milliseconds for a completion. Returns 1, or 0 if none came, -1 for an error
 * (t->why). */
int
link_poll_for(struct tour *t, struct ibv_cq *cq, struct ibv_wc *wc, unsigned ms);
/* Returns whether a request that must fail has this status. On a lossy wire RETRY_EXC_ERR
 * is allowed too: if the NAK is lost, the responder is in ERR and does not answer. */
bool
link_refused(const struct tour *t, enum ibv_wc_status got, enum ibv_wc_status want);
/* Checks that no completion comes for a while. */
const char *
link_quiet(struct tour *t, struct ibv_cq *cq);
/* Waits for an asynchronous event of this type. Earlier events are discarded. */
const char *
link_event(struct tour *t, enum ibv_event_type want);
void
link_events_forget(struct tour *t);
/* Registers another memory region over t->mem. */
struct ibv_mr *
link_mr(struct tour *t, int access);

/* Groups of cells */

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
