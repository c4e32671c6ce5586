/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/cm. */
#ifndef ROCADE_CM_CM_INTERNAL_H
#define ROCADE_CM_CM_INTERNAL_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "cm/cm_core.h"

#define CM_TX_QUEUE_LEN 256 /* capacity of the queue of cm_tx(): a power of two */
#define CM_BUCKETS 1024
/* the message that an MRA or REJ refers to (IBA 12.6.6.1, 12.6.7.1) */
#define CM_MSG_REQ 0
#define CM_MSG_REP 1
#define CM_MSG_OTHER 2

/* States of a connection (IBA 12.9.7). */
#define CM_STATES(X)                                                                     \
	X(FREE)                                                                          \
	X(REQ_SENT) /* active, timer: retry */                                           \
	X(REP_RCVD) /* active: the user prepares its QP */                               \
	X(REQ_RCVD) /* passive: the user decides */                                      \
	X(REP_SENT) /* passive, timer: retry */                                          \
	X(ESTABLISHED)                                                                   \
	X(DREQ_SENT) /* timer: retry */                                                  \
	X(TIMEWAIT)  /* timer: end of time wait */                                       \
	X(ANSWERED)  /* passive: REJ or SIDR_REP sent, repeated until the timer ends */  \
	X(SIDR_SENT) /* active, timer: retry */                                          \
	X(SIDR_RCVD) /* passive: the user decides */                                     \
	X(CLOSED)    /* not yet released by the user */

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
	/* the listener whose backlog counts this connection; NULL: none does */
	struct cm_listener *listener;
	LIST_ENTRY(cm_conn) backlog_link; /* in listener->conns */
	TAILQ_ENTRY(cm_conn) link;        /* in cm->spare or cm->answered */
	TAILQ_ENTRY(cm_conn) event_link;
	LIST_ENTRY(cm_conn) id_link;  /* in cm->by_id, by remote_key and remote_id */
	LIST_ENTRY(cm_conn) qpn_link; /* in cm->by_qpn, by remote_key and remote_qpn */
	uint64_t tid;
	uint64_t remote_key; /* the peer's CA GUID; SIDR: hash of the peer's address */
	uint64_t wait_ns;    /* how long to wait for a response to `out` */
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	uint8_t state; /* enum cm_state */
	uint8_t retries_left;
	uint8_t ack_timeout;
	bool by_id, by_qpn; /* in these hash tables */
	bool sidr;
	bool mra_received; /* an MRA extended the timer; only one does */
	bool released;
	uint32_t events; /* pending events: a bit for each enum cm_event_type */
	uint32_t raised; /* events so far: each type is raised once */
	int status;      /* REJECTED: the reason; UNREACHABLE: -ETIMEDOUT */
	struct cm_path path;
	struct mad out;  /* the last message sent, for retries */
	struct mad open; /* the peer's REQ, REP, SIDR_REQ or SIDR_REP */
	struct mad last; /* the peer's REJ or DREQ */
};

/* Local addresses of a listener. If several listeners match a request, the one with the
 * highest value gets it. */
enum cm_any { CM_ANY, CM_ANY_IPV4, CM_ANY_IPV6, CM_ANY_NOT };

struct cm_listener {
	LIST_ENTRY(cm_listener) link;
	struct cm *cm;
	void *user;
	uint64_t service_id;
	uint32_t backlog;
	uint32_t pending;
	struct conn_bucket conns; /* pending requests */
	bool sidr;
	enum cm_any any;
	uint8_t addr[16];
};
LIST_HEAD(cm_listeners, cm_listener);

/* A message in the queue of cm_tx(). */
struct cm_out {
	struct mad mad;
	struct cm_path path;
};

struct cm {
	struct cm_conf conf;
	struct wheel wheel;
	uint64_t rand;
	uint64_t secret; /* of the hash functions */
	unsigned index_bits;
	uint32_t id_mask; /* XORed into all IDs, so that the first one is random too */
	uint32_t in_use;
	struct cm_conn *conns;
	struct conn_list spare;
	/* oldest first; freed early if there is no spare connection */
	struct conn_list answered;
	struct conn_list conns_with_events;
	uint32_t out_head, out_tail;
	uint32_t listener_count;
	struct cm_stats stats;
	struct cm_listeners listeners[CM_BUCKETS];
	struct conn_bucket by_id[CM_BUCKETS];
	struct conn_bucket by_qpn[CM_BUCKETS];
	struct cm_out out[CM_TX_QUEUE_LEN];
};

/* Duration of a timeout code (IBA 12.7). */
static inline uint64_t
code_ns(unsigned code)
{
	return UINT64_C(4096) << code;
}

/* cm_core.c */
/* Queues a copy of the message for cm_tx(). */
void cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad);

/* table.c */
/* Returns a connection in state FREE with a new ID, or NULL if none is left. The caller
 * sets another state. */
struct cm_conn *conn_alloc(struct cm *cm);
void conn_free(struct cm_conn *conn);
/* Find a connection by the local ID, the peer's ID or the peer's QPN. key: the peer's
 * GUID, or for SIDR gid_key() of its address. Return NULL if there is none. */
struct cm_conn *conn_find(struct cm *cm, uint32_t local_id);
struct cm_conn *conn_find_id(struct cm *cm, uint64_t key, uint32_t remote_id, bool sidr);
struct cm_conn *conn_find_qpn(struct cm *cm, uint64_t guid, uint32_t qpn);
void conn_hash_id(struct cm_conn *conn);
void conn_hash_qpn(struct cm_conn *conn);
/* Removes the connection from the tables by_id and by_qpn. */
void conn_unhash(struct cm_conn *conn);
void conn_unhash_qpn(struct cm_conn *conn);
/* Hash of a GID, for SIDR messages, which carry no GUID. */
uint64_t gid_key(const struct cm *cm, const uint8_t gid[16]);

/* state.c */
/* Changes the state and stops the timer. */
void conn_enter(struct cm_conn *conn, enum cm_state state);
/* Queues an event for the user, unless it has released the connection or this type was
 * raised before. */
void conn_event(struct cm_conn *conn, enum cm_event_type type);
/* Returns whether the event of the connection's request was not fetched yet. */
bool conn_request_unread(const struct cm_conn *conn);
/* Sends conn->out, and starts the timer that resends it every wait_ns until a response
 * changes the state. */
void conn_send_with_retry(struct cm_conn *conn, uint64_t now);
void conn_timeout(struct cm_conn *conn, uint64_t now);
/* Closes the connection. Frees it if the user has released it. */
void conn_end(struct cm_conn *conn);
/* Enters TIMEWAIT for the time of the ACK timeout. */
void conn_timewait(struct cm_conn *conn, uint64_t now);
/* Sends conn->out and enters ANSWERED: for a while, a retry of the request gets the same
 * response. */
void conn_send_final(struct cm_conn *conn, uint64_t now);
/* Initialises a message to the peer with both communication IDs. */
void conn_mad_init(
	const struct cm_conn *conn, struct mad *mad, enum mad_attr attr, uint64_t tid);
/* Sends a DREQ, and enters DREQ_SENT. */
void conn_dreq_send(struct cm_conn *conn, const void *private, size_t len, uint64_t now);
/* The peer has connected anew and lost this connection: disconnects it. */
void conn_stale(struct cm_conn *conn, uint64_t now);
/* Builds a REJ in conn->out; the caller sends it. */
void conn_rej_build(
	struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len);

/* listen.c */
struct cm_listener *listener_find(
	struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16]);
/* Returns a connection in this state for a new request. Returns NULL if the backlog is
 * full or no connection is left. */
struct cm_conn *listener_conn(struct cm_listener *listener, enum cm_state state);
/* Leaves the backlog once the request was fetched and decided. */
void conn_leave_backlog(struct cm_conn *conn);

/* cm_rx_req.c, cm_rx_sidr.c: handle a received message. Return CM_DROP_none, or why it
 * was dropped. */
enum cm_drop req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop sidr_req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop sidr_rep_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);

#endif
