/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/cm tell each other. */
#ifndef ROCADE_CM_INTERNAL_H
#define ROCADE_CM_INTERNAL_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "cm/cm.h"

#define CM_OUT 256 /* messages that may wait for cm_tx(): a power of two */
#define CM_BUCKETS 1024
#define CM_MRA_REQ 0 /* which message an MRA or REJ is about (IBA 12.6.6.1, 12.6.7.1) */
#define CM_MRA_REP 1
#define CM_REJ_OTHER 2

/* Where a connection stands (IBA 12.9.7). */
#define CM_STATES(X)                                                                     \
	X(FREE)                                                                          \
	X(REQ_SENT) /* active, timer: retry */                                           \
	X(REP_RCVD) /* active: the user prepares its QP */                               \
	X(REQ_RCVD) /* passive: the user decides */                                      \
	X(REP_SENT) /* passive, timer: retry */                                          \
	X(ESTABLISHED)                                                                   \
	X(DREQ_SENT) /* timer: retry */                                                  \
	X(TIMEWAIT)  /* timer: its end */                                                \
	X(ANSWERED)  /* passive, rejected or SIDR: out is repeated; timer: no longer */  \
	X(SIDR_SENT) /* timer: retry */                                                  \
	X(SIDR_RCVD)                                                                     \
	X(CLOSED) /* waits for its release */

enum cm_state {
#define CM_STATE_ENUM(name) CM_##name,
	CM_STATES(CM_STATE_ENUM)
#undef CM_STATE_ENUM
};

TAILQ_HEAD(conn_list, cm_conn);
LIST_HEAD(conn_bucket, cm_conn);

struct cm_conn {
	struct wheel_timer timer;
	struct cm *cm;
	void *user;
	struct cm_listener *listener;  /* it counts there; NULL */
	LIST_ENTRY(cm_conn) pend_link; /* of its listener */
	TAILQ_ENTRY(cm_conn) link;     /* spare or answered */
	TAILQ_ENTRY(cm_conn) event_link;
	LIST_ENTRY(cm_conn) id_link;  /* by the peer's key and id */
	LIST_ENTRY(cm_conn) qpn_link; /* by the peer's GUID and QPN */
	uint64_t tid;
	uint64_t remote_key; /* its GUID; SIDR: of its address */
	uint64_t wait_ns;    /* for an answer to out */
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	uint8_t state; /* enum cm_state */
	uint8_t retries_left;
	uint8_t ack_timeout;
	bool by_id, by_qpn; /* in the tables */
	bool sidr;
	bool waited; /* the peer asked for more time, as it may once */
	bool released;
	uint32_t events; /* a bit each, not fetched */
	uint32_t raised; /* each comes once */
	int status;      /* of REJECTED or SIDR_REPLY */
	struct cm_path path;
	struct mad out;  /* what was sent last and may have to be sent again */
	struct mad open; /* the peer's REQ, REP, SIDR_REQ or SIDR_REP */
	struct mad last; /* its REJ or DREQ */
};

/* Of which of our addresses a listener is; several may match, the last of them hears. */
enum cm_any { CM_ANY, CM_ANY_IPV4, CM_ANY_IPV6, CM_ANY_NOT };

struct cm_listener {
	LIST_ENTRY(cm_listener) link;
	struct cm *cm;
	void *user;
	uint64_t service_id;
	uint32_t backlog;
	uint32_t pending;
	struct conn_bucket conns; /* those that are pending */
	bool sidr;
	enum cm_any any;
	uint8_t addr[16];
};
LIST_HEAD(cm_listeners, cm_listener);

struct cm_out {
	struct mad mad;
	struct cm_path path;
};

struct cm {
	struct cm_conf conf;
	struct wheel wheel;
	uint64_t rand;
	uint64_t secret; /* of the hash */
	unsigned index_bits;
	uint32_t id_mask; /* over all ids: makes the first one random too */
	uint32_t in_use;
	struct cm_conn *conns;
	struct conn_list spare;
	struct conn_list answered; /* oldest first: given up when there is no spare one */
	struct conn_list eventful;
	uint32_t out_head, out_tail;
	uint32_t listener_count;
	struct cm_stats stats;
	struct cm_listeners listeners[CM_BUCKETS];
	struct conn_bucket by_id[CM_BUCKETS];
	struct conn_bucket by_qpn[CM_BUCKETS];
	struct cm_out out[CM_OUT];
};

static inline uint64_t
code_ns(unsigned code)
{
	return UINT64_C(4096) << code;
}

/* cm.c */
uint64_t
cm_rand(struct cm *cm);
void
cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad);

/* table.c */
/* NULL: none left. State FREE, with an id; the caller gives it another state. */
struct cm_conn *
conn_alloc(struct cm *cm);
void
conn_free(struct cm_conn *conn);
struct cm_conn *
conn_find(struct cm *cm, uint32_t local_id);
struct cm_conn *
conn_find_id(struct cm *cm, uint64_t key, uint32_t remote_id, bool sidr);
struct cm_conn *
conn_find_qpn(struct cm *cm, uint64_t guid, uint32_t qpn);
void
conn_hash_id(struct cm_conn *conn);
void
conn_hash_qpn(struct cm_conn *conn);
/* No message of the peer's finds it any more. */
void
conn_unhash(struct cm_conn *conn);
void
conn_unhash_qpn(struct cm_conn *conn);
/* SIDR has no GUID. */
uint64_t
gid_key(const struct cm *cm, const uint8_t gid[16]);

/* state.c */
void
conn_enter(struct cm_conn *conn, enum cm_state state);
void
conn_event(struct cm_conn *conn, enum cm_event_type type);
/* Whether the user has yet to hear of this request. */
bool
conn_is_news(const struct cm_conn *conn);
/* Sends conn->out, and again each wait_ns until a reply changes the state. */
void
conn_ask(struct cm_conn *conn, uint64_t now);
void
conn_timeout(struct cm_conn *conn, uint64_t now);
/* Nothing is left but what its user holds. */
void
conn_end(struct cm_conn *conn);
void
conn_timewait(struct cm_conn *conn, uint64_t now);
/* It has said conn->out, and says it again for a while when asked again. */
void
conn_answered(struct cm_conn *conn, uint64_t now);
/* A message to the peer with both ids. */
void
conn_mad(const struct cm_conn *conn, struct mad *mad, enum mad_attr attr, uint64_t tid);
void
conn_dreq(struct cm_conn *conn, const void *private, size_t len, uint64_t now);
/* Its peer has connected anew and knows nothing of it: it is over. */
void
conn_stale(struct cm_conn *conn, uint64_t now);
void
conn_rej(struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len);

/* listen.c */
struct cm_listener *
listener_find(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16]);
/* A connection for a request, in this state; NULL: the backlog is full, or none is left.
 */
struct cm_conn *
listener_conn(struct cm_listener *listener, enum cm_state state);
/* Gives up its place in the backlog when the request is fetched and decided. */
void
conn_unpend(struct cm_conn *conn);

/* rx_req.c, rx_sidr.c: a message in; what becomes of it. */
enum cm_drop
req_rx(struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop
sidr_req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop
sidr_rep_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);

#endif
