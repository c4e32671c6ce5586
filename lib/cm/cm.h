/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of a port (IBA 12, annex A11): listeners, connections, datagram
 * service resolution. It does no I/O and reads no clock: messages come in by cm_rx(),
 * what it owes is fetched with cm_tx(), what happened with cm_next_event(). One thread at
 * a time.
 *
 * All memory is taken in cm_create(): what peers send can use up connections (then
 * requests are rejected, IBA reason 3), nothing else.
 *
 * How long a peer that says nothing more is remembered: a request of ours max_retries + 1
 * times the response timeout and two packet lifetimes, and at most 69 s more when it said
 * MRA; then, if it was connected, the time wait. What waits for this side's user waits
 * for that.
 */
#ifndef ROCADE_CM_CM_H
#define ROCADE_CM_CM_H

#include "cm/mad.h"

/* Reasons of a REJ (IBA 12.6.7.2), those that are used here. */
enum cm_reason {
	CM_REJ_NO_QP = 1,
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_ID = 6,
	CM_REJ_NO_SERVICE = 8,
	CM_REJ_TRANSPORT = 9,
	CM_REJ_STALE = 10,
	CM_REJ_GID = 12,
	CM_REJ_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_DUPLICATE_ID = 30,
};

/* Status of a SIDR_REP (IBA 12.11.2.1). */
enum cm_sidr_status {
	CM_SIDR_VALID,
	CM_SIDR_NO_SERVICE,
	CM_SIDR_REJECTED,
	CM_SIDR_NO_QP,
	CM_SIDR_VERSION = 5,
};

enum cm_transport { CM_RC, CM_UC, CM_RD, CM_XRC };

struct cm_conf {
	uint64_t ca_guid;
	/* Of ids, and of what hides the hash from peers: random, or at least another one
	 * at each start, or peers take us for stale. */
	uint64_t seed;
	uint32_t max_conns; /* in any state, the time wait too: 1..65536 */
	/* Codes n mean 4.096 us * 2^n (IBA 12.7). */
	uint8_t response_timeout; /* 0..CM_TIMEOUT_MAX: within which either side answers
				   */
	uint8_t packet_life;
	uint8_t ack_timeout; /* of the QPs, which is the time wait too */
	uint8_t mra_timeout; /* what a slow user asks the peer for */
	uint8_t max_retries; /* 0..15 */
};
#define CM_TIMEOUT_MAX 22 /* 17 s: what a peer asks for beyond that is not granted */
#define CM_MRA_MAX 24     /* 69 s: the same */
#define CM_MAX_LISTENERS 4096

/* Where a message goes: addresses as GIDs. */
struct cm_path {
	uint8_t sgid[16]; /* ours */
	uint8_t dgid[16];
};

struct cm;
struct cm_conn;
struct cm_listener;

/* What either side says of its QP. */
struct cm_qp {
	uint32_t qpn;
	uint32_t psn;                /* that the other end begins with (IBA 12.7.31) */
	uint8_t responder_resources; /* READs and atomics at once that it answers */
	uint8_t initiator_depth;     /* that it will have under way */
	uint8_t rnr_retry;
	bool srq;
	bool flow_control; /* end to end: announced, and told; credits are not counted */
	/* Of a request only. */
	uint8_t retry_count;
	uint8_t path_mtu;  /* 1..5 */
	uint8_t transport; /* enum cm_transport */
};

struct cm_request {
	struct cm_path path;
	uint64_t service_id;
	uint16_t sport;
	struct cm_qp qp;
	const void *private;
	size_t private_len; /* to CMA_REQ_PRIVATE; SIDR: CMA_SIDR_PRIVATE */
};

enum cm_event_type {
	CM_EVENT_REQUEST,     /* passive: accept or reject it, then release it. user: the
				listener's */
	CM_EVENT_REPLY,       /* active: bring the QP to RTS, then cm_confirm() */
	CM_EVENT_ESTABLISHED, /* passive: the peer is ready */
	CM_EVENT_REJECTED,    /* status: the reason */
	CM_EVENT_UNREACHABLE, /* no answer */
	CM_EVENT_DISCONNECTED,
	CM_EVENT_SIDR_REQUEST, /* passive: cm_sidr_reply(), then release it */
	CM_EVENT_SIDR_REPLY, /* active: status enum cm_sidr_status; qp and qkey where 0 */
	CM_EVENT_GONE,       /* the time wait is over: the QPN may be used again */
	CM_EVENT_COUNT
};

struct cm_event {
	enum cm_event_type type;
	int status;
	struct cm_conn *conn;
	void *user;
	/* REQUEST, REPLY: the peer's; SIDR_REPLY: its QPN. The depths are turned round:
	 * responder_resources is what this side must answer at once. */
	struct cm_qp qp;
	uint8_t ack_timeout; /* REQUEST: code for this side's QP */
	uint32_t qkey;
	struct cm_path path;
	uint64_t service_id;
	uint16_t sport;         /* the peer's */
	const uint8_t *private; /* valid until the connection is released */
	size_t private_len;
};

struct cm_stats {
#define CM_STAT(name, text) uint64_t name;
#include "cm/cm_stats.def"
	uint64_t drop[CM_DROP_COUNT];
};

struct cm_stat_row {
	const char *name;
	const char *text;
};
#define CM_STAT_COUNT (sizeof(struct cm_stats) / sizeof(uint64_t))
extern const struct cm_stat_row cm_stat_rows[CM_STAT_COUNT];

/* What the Linux kernel's CM uses; the GUID, the seed and max_conns are left. */
void
cm_conf_default(struct cm_conf *conf);
/* -EINVAL, -ENOMEM. */
int
cm_create(const struct cm_conf *conf, uint64_t now, struct cm **out);
/* Forgets everything, says nothing. */
void
cm_destroy(struct cm *cm);

/* A message that came to QP 1 with its Q_Key, from the peer's QP 1. What becomes of it.
 */
enum cm_drop
cm_rx(struct cm *cm, const uint8_t *bytes, size_t len, const struct cm_path *path,
	uint64_t now);
/* The next message to send; false when there is none. */
bool
cm_tx(struct cm *cm, struct mad *mad, struct cm_path *path);
/* Whether it has one. */
bool
cm_owes(const struct cm *cm);
/* What is due by now: answers that did not come, time waits that end. */
void
cm_run(struct cm *cm, uint64_t now);
/* When cm_run() has something to do; TIME_NEVER. */
uint64_t
cm_deadline(const struct cm *cm);
bool
cm_next_event(struct cm *cm, struct cm_event *event);
bool
cm_has_event(const struct cm *cm);
const struct cm_stats *
cm_stats_of(const struct cm *cm);
/* Connections in any state. */
uint32_t
cm_in_use(const struct cm *cm);
uint32_t
cm_listeners(const struct cm *cm);

/* addr: one of our addresses; ::ffff:0.0.0.0: all of IPv4, ::: all of IPv6, NULL: all;
 * the closest match hears a request. backlog: requests that nobody has fetched and
 * decided on. -EADDRINUSE, -ENOSPC, -ENOMEM, -EINVAL: no backlog. */
int
cm_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16], uint32_t backlog,
	void *user, struct cm_listener **out);
/* The same for datagrams: of either kind of request the listeners of the other do not
 * hear. */
int
cm_sidr_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out);
/* Requests whose event was not fetched are rejected; the others stay their owner's. */
void
cm_unlisten(struct cm_listener *listener, uint64_t now);

/* A connection is the caller's, from cm_connect() or the event of the request to
 * cm_release(). -EINVAL; -ENOSPC: max_conns. */
int
cm_connect(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out);
/* -ENOTCONN in these: not in that state (any more). -EINVAL: too much private data. */
int
cm_accept(struct cm_conn *conn, const struct cm_qp *qp, const void *private, size_t len,
	uint64_t now);
int
cm_reject(struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len,
	uint64_t now);
int
cm_confirm(struct cm_conn *conn, const void *private, size_t len, uint64_t now);
/* Passive: data came before the peer's RTU (IBV_EVENT_COMM_EST). */
int
cm_established(struct cm_conn *conn, uint64_t now);
/* -ENOTCONN when it is disconnected, or about to be. */
int
cm_disconnect(struct cm_conn *conn, const void *private, size_t len, uint64_t now);

int
cm_sidr_request(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out);
int
cm_sidr_reply(struct cm_conn *conn, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const void *private, size_t len, uint64_t now);

/* In any state: what is open is rejected or disconnected; no event names it any more. */
void
cm_release(struct cm_conn *conn, uint64_t now);
void
cm_set_user(struct cm_conn *conn, void *user);
const char *
cm_state_name(const struct cm_conn *conn);

#endif
