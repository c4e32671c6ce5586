/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A conformance matrix: every service and opcode between two programs. Plain verbs, so
 * that the same source runs over any device; host.h is the only difference. Both ends run
 * the same cases in the same order. In each case, once per direction, one end is active
 * (it posts the requests) and the other one passive.
 */
#ifndef ROCADE_MATRIX_H
#define ROCADE_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define MATRIX_SLOT (size_t)((1 << 20) + 4096) /* the longest message and a guard */
#define MATRIX_SLOTS 4
#define MATRIX_HALF (MATRIX_SLOT * MATRIX_SLOTS) /* sources; the destinations follow */
#define MATRIX_BYTES (2 * MATRIX_HALF)
#define MATRIX_WRS 64
#define MATRIX_QKEY 0x11223344
#define MATRIX_WAIT 20 /* seconds, for a completion: the first limit */
#define MATRIX_WAIT_MOST 180
#define MATRIX_SKIPS 16
#define MATRIX_GRH 40

/* Sent by each end to the other about a connection. */
struct matrix_end {
	uint32_t qpn;
	uint32_t psn;
	uint32_t srqn;
	uint32_t rkey;
	uint64_t addr;
	uint8_t gid[16];
	uint32_t extra[4]; /* contents depend on the case */
};

/* The QPs of a case. */
struct link_conf {
	enum ibv_qp_type type;
	bool srq;
	uint64_t ops;       /* IBV_QP_EX_WITH_*; 0: a plain QP */
	bool few_retries;   /* few retries */
	bool short_timeout; /* seven retries with a short timeout */
	/* six retries, the most that every device counts (seven may mean infinite) */
	bool finite_retries;
	/* The passive end's: */
	int access;        /* further access rights of its QP */
	int denied_access; /* access rights that its QP lacks */
	int rd_atomic;     /* concurrent READs and atomics; 0: four, -1: none */
	bool half_mtu;     /* its path MTU is half of the active end's */
	bool stays_rtr;    /* it stays in RTR */
};

struct matrix {
	bool server;
	bool active; /* in this case */
	int sock;
	const char *device_name;
	const char *only; /* only cases whose name contains this; NULL: all */
	const char *skip[MATRIX_SKIPS]; /* names of the cases to skip */
	unsigned skip_count;
	unsigned wait_s;
	bool lossy;       /* the wire loses packets */
	bool copies;      /* the wire duplicates and reorders packets too */
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
	uint32_t seed;     /* the same at both ends, different for each case */
	/* The connection of the case. */
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct link_conf conf;
	struct matrix_end own, peer;
	char why[256];
	bool peer_gave_up;
	bool lost; /* connection to the other end lost */
	unsigned passed, failed, skipped;
};

/* A case. Runs at both ends. Returns NULL or the reason of the failure, usually
 * t->why. */
typedef const char *(*case_fn)(struct matrix *t, const void *arg);
/* Returns NULL if the device can run the case, otherwise the reason. */
typedef const char *(*case_need)(struct matrix *t, const void *arg);
/* For cases that every device can run. */
const char *need_nothing(struct matrix *t, const void *arg);

/* Runs a case in both directions and prints a line for each. */
void matrix_case(
	struct matrix *t, const char *name, case_need need, case_fn fn, const void *arg);
/* Formats t->why and returns it. */
const char *case_fail(struct matrix *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define TRY(call)                                                                        \
	do {                                                                             \
		const char *try_ = (call);                                               \
		if (try_ != NULL)                                                        \
			return try_;                                                     \
	} while (0)
#define NEED(t, condition)                                                               \
	do {                                                                             \
		if (!(condition))                                                        \
			return case_fail(t, "line %d: %s", __LINE__, #condition);        \
	} while (0)

/* ---- oob.c: out of band ---- */

int oob_listen(const char *address, unsigned port);
int oob_connect(const char *address, unsigned port);
/* Sends `len` bytes (at most OOB_MAX) and receives as many. Returns NULL or the reason of
 * a failure, for example that the other end has given up the case. */
#define OOB_MAX 160
const char *oob_swap(struct matrix *t, const void *mine, void *theirs, size_t len);
/* Waits until both ends have called it. */
const char *oob_sync(struct matrix *t);
/* Ends a case. Returns NULL if it succeeded at both ends. */
const char *oob_end(struct matrix *t, bool good);

/* ---- link.c: QPs and data ---- */

int link_to_init(struct matrix *t, struct ibv_qp *qp);
int link_to_rtr(struct matrix *t, struct ibv_qp *qp, const struct matrix_end *peer);
int link_to_rts(struct matrix *t, struct ibv_qp *qp);
struct ibv_ah *link_ah(struct matrix *t, const uint8_t gid[16]);
struct ibv_ah *link_ah_of(struct matrix *t, const uint8_t gid[16], uint8_t hops,
	uint8_t class, uint32_t flow);
/* Fills t->own, except for the QPN. */
void link_describe_own(struct matrix *t);
/* Creates and connects t->qp at both ends. */
const char *link_open(struct matrix *t, const struct link_conf *conf);
void link_close(struct matrix *t);

uint8_t *link_source(struct matrix *t, unsigned slot);
uint8_t *link_target(struct matrix *t, unsigned slot);
/* Address of the peer's target slot. */
uint64_t link_remote(struct matrix *t, unsigned slot);

/* Fills in a pattern that depends on the case and the slot. */
void data_fill(struct matrix *t, uint8_t *at, size_t len, unsigned slot);
void data_clear(uint8_t *at, size_t len);
/* Checks the bytes, and that the guard behind them is unchanged. */
const char *data_check(struct matrix *t, const uint8_t *at, size_t len, unsigned slot);
/* Returns byte i of the pattern. */
uint8_t data_byte(const struct matrix *t, size_t i, unsigned slot);

const char *link_recv(struct matrix *t, uint64_t wr_id, uint8_t *at, uint32_t len);
const char *link_send(struct matrix *t, struct ibv_send_wr *wr);
/* Waits for the next completion, of any status. */
const char *link_poll(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc);
/* Waits for the next completion, which must be a success with this wr_id. */
const char *link_done(
	struct matrix *t, struct ibv_cq *cq, uint64_t wr_id, struct ibv_wc *wc);
/* Waits `ms` milliseconds for a completion. Returns 1, or 0 if none came, -1 for an error
 * (t->why). */
int link_poll_for(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc, unsigned ms);
/* The same, up to the limit of await.h. */
int link_await(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc);
/* The same, for a message that nothing resends: on a lossy wire it counts as lost soon. */
int link_await_lossy(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc);
/* How often the case sends such a message before it fails. */
unsigned link_sends(const struct matrix *t);
/* Returns whether a request that must fail has this status. On a lossy wire RETRY_EXC_ERR
 * is allowed too: if the NAK is lost, the responder is in ERR and does not answer. */
bool link_refused(
	const struct matrix *t, enum ibv_wc_status got, enum ibv_wc_status want);
/* Checks that no completion comes for a while. */
const char *link_idle(struct matrix *t, struct ibv_cq *cq);
/* Waits for an asynchronous event of this type. Earlier events are discarded. */
const char *link_event(struct matrix *t, enum ibv_event_type want);
void link_events_discard(struct matrix *t);
/* Registers another memory region over t->mem. */
struct ibv_mr *link_mr(struct matrix *t, int access);

/* Groups of cases */

void cases_transfer(struct matrix *t);

void cases_rc(struct matrix *t);
void cases_errors(struct matrix *t);
void cases_events(struct matrix *t);
void cases_stream(struct matrix *t);
void cases_datagram(struct matrix *t);
void cases_memory(struct matrix *t);
void cases_xrc(struct matrix *t);
void cases_wr(struct matrix *t);

#endif
