/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structures of the connection manager. Internal to lib/cm, whose files may read every
 * member; cm_port.c and other layers use cm_core.h. A connection's state, its timer and
 * its pending events change in state.c alone, with two exceptions: mra_rx() extends the
 * timer, and cm_event_queue.c and cm_release() take events away.
 */
#ifndef ROCADE_CM_CM_TYPES_H
#define ROCADE_CM_CM_TYPES_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "cm/cm_core.h"

#define CM_TX_QUEUE_LEN 256 /* capacity of the queue of cm_tx(): a power of two */
/* Of listeners, and of source addresses. The tables of connections have as many buckets as there
 * can be connections, and at least these. */
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
	X(DREQ_RCVD) /* the user finishes with its QP, and then disconnects, too */      \
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

/* The peer of a connection: another host that claims this GUID is another peer. */
struct cm_peer {
	uint64_t guid; /* CA GUID; SIDR: 0 */
	uint8_t addr[16];
};

TAILQ_HEAD(conn_list, cm_conn);
LIST_HEAD(conn_bucket, cm_conn);

enum { HALF_OPEN_ALL, HALF_OPEN_LISTENER, HALF_OPEN_SOURCE, HALF_OPEN_LISTS };

struct half_open_list { /* oldest first */
	struct conn_list conns;
	uint32_t count;
};

struct cm_conn {
	struct wheel_timer timer;
	struct cm *cm;
	void *user;
	/* the listener whose backlog counts this connection; NULL: none does */
	struct cm_listener *listener;
	LIST_ENTRY(cm_conn) backlog_link; /* in listener->conns */
	TAILQ_ENTRY(cm_conn) link;        /* in cm->spare or cm->ending */
	TAILQ_ENTRY(cm_conn) event_link;
	LIST_ENTRY(cm_conn) id_link;  /* in cm->by_id, by peer and remote_id */
	LIST_ENTRY(cm_conn) qpn_link; /* in cm->by_qpn, by peer and remote_qpn */
	uint64_t tid;
	uint64_t ca_guid;    /* of this end, as its REQ or REP names it */
	struct cm_peer peer; /* set when its ID is known */
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
	bool xrc;          /* its REQ names XRC */
	bool mra_received; /* an MRA extended the timer; only one does */
	bool released;
	bool unconfirmed; /* the peer's address may be false */
	bool ending;      /* in cm->ending */
	/* the lists of half_open.h that it is in; NULL: none */
	struct half_open_list *half_open[HALF_OPEN_LISTS];
	TAILQ_ENTRY(cm_conn) half_open_link[HALF_OPEN_LISTS];
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
	struct half_open_list half_open;
	bool sidr;
	bool closed; /* in cm->closed, until the last one of half_open has left */
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
	struct random_key id_key;
	struct random_key table_key; /* of the hash functions */
	struct random_numbers tids;
	unsigned index_bits;
	uint32_t bucket_mask; /* number of buckets of by_id and of by_qpn - 1 */
	uint32_t id_count;    /* IDs given so far */
	uint32_t in_use;
	struct cm_conn *conns;
	struct conn_list spare;
	/* released by the user, in ANSWERED, DREQ_SENT or TIMEWAIT; oldest first; freed
	 * early if there is no spare connection */
	struct conn_list ending;
	struct half_open_list half_open; /* of all listeners */
	struct half_open_list half_open_by_source[CM_BUCKETS];
	/* limit of answers to each source, see cm_answer() */
	uint64_t answers_until_ns[CM_BUCKETS];
	struct conn_list conns_with_events;
	uint32_t out_head, out_tail;
	uint32_t listener_count;
	struct cm_stats stats;
	struct cm_listeners listeners[CM_BUCKETS];
	struct cm_listeners closed;
	struct conn_bucket *by_id;
	struct conn_bucket *by_qpn;
	struct cm_out out[CM_TX_QUEUE_LEN];
};

/* Duration of a timeout code (IBA 12.7). */
static inline uint64_t
code_ns(unsigned code)
{
	return UINT64_C(4096) << code;
}

#endif
