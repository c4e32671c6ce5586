/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager (CM) of a port (IBA 12, annex A11): listeners, connections,
 * service ID resolution (SIDR). It does no I/O and reads no clock. cm_rx() takes received
 * messages, cm_tx() returns messages to send, cm_next_event() returns events for the
 * user: the code that calls this interface (lib/ucm, or lib/verbs for <rocade/cm.h>). Not
 * thread safe: one thread at a time.
 *
 * Peers cause no allocation: cm_create() allocates all connections. While none is free,
 * requests are rejected with reason 3 (IBA 12.6.7.2).
 *
 * The address of a REQ may be false until the RTU has come. So connections that another
 * host has asked for and not confirmed are limited: to a half of all connections, to a
 * quarter for each listener, to an eighth for each source address. At a limit, and when
 * no connection is free, the oldest of them ends. Other hosts cannot take the last eighth
 * of all connections. Repeated REPs, and responses that belong to no confirmed
 * connection, are limited for each address.
 *
 * A message that needs a response and gets none is sent max_retries + 1 times, with a
 * wait of the response timeout and two packet lifetimes after each. Then the peer counts
 * as unreachable. For a REP, the retries and the response timeout are those of the peer's
 * REQ, but at most CM_REP_RETRIES and these. An MRA adds at most 69 s. After a REP or a
 * DREQ without a response the connection is in time wait before it ends. States that wait
 * for the local user have no time limit.
 */
#ifndef ROCADE_CM_CM_CORE_H
#define ROCADE_CM_CM_CORE_H

#include "base/random.h"
#include "cm/mad.h"

/* The reasons of a REJ (IBA 12.6.7.2) that are used here. */
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
	CM_REJ_VENDOR_OPTION = 35,
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
	/* Of the communication IDs, the transaction IDs and the hash tables: random, see
	 * random_key_draw(). The same one at another start would let a peer take a new
	 * connection for one that it has already, and reject it as stale. */
	struct random_key random;
	uint32_t
		max_conns; /* connections in any state, including time wait: 1..CM_CONNS_MAX */
	/* Timeout codes: code n means 4.096 us * 2^n (IBA 12.7). response_timeout and
	 * packet_life are at most CM_TIMEOUT_MAX, the others at most CM_MRA_MAX. */
	/* how long each side waits for a response of the other */
	uint8_t response_timeout;
	uint8_t packet_life;
	uint8_t ack_timeout; /* of the QPs; also the duration of time wait */
	/* service timeout of the MRAs that are sent while the local user decides */
	uint8_t mra_timeout;
	uint8_t max_retries; /* 0..15 */
};
#define CM_TIMEOUT_MAX 22 /* 17 s */
#define CM_MRA_MAX 24     /* 69 s: a longer timeout of an MRA is reduced to this */
#define CM_REP_RETRIES 7
#define CM_MAX_LISTENERS 4096
#define CM_TIMERS_BATCH 32
#define CM_TIMER_MOVES 2048 /* steps within the timing wheel, of one cm_run() */
#define CM_CONNS_MAX 65536

/* Addresses of a message, as GIDs. For received messages too, sgid is the local one and
 * dgid the peer's. */
struct cm_path {
	uint8_t sgid[16]; /* local */
	uint8_t dgid[16];
	/* the peer is a program of this host: its address is true, and it may use the
	 * connections that are reserved for such programs */
	bool local;
};

struct cm;
struct cm_conn;
struct cm_listener;

/* QP parameters of one side, as carried in REQ and REP. */
struct cm_qp {
	uint32_t qpn;
	uint32_t psn; /* starting PSN of the other side's SQ (IBA 12.7.31) */
	uint8_t responder_resources; /* READs and atomics outstanding that it accepts */
	uint8_t initiator_depth;     /* READs and atomics that it may have outstanding */
	uint8_t rnr_retry;
	bool srq;
	/* end-to-end flow control: reported only, no credits are counted */
	bool flow_control;
	struct cm_ece ece;
	/* of the channel adapter with this QP; 0: that of the configuration. Not set in events. */
	uint64_t ca_guid;
	/* In a REQ only. */
	uint8_t retry_count;
	uint8_t path_mtu;  /* 1..5 */
	uint8_t transport; /* enum cm_transport */
};

/* A request that cm_connect() or cm_sidr_request() sends. */
struct cm_request {
	struct cm_path path;
	uint64_t service_id; /* of the peer's listener */
	uint16_t sport;      /* port number of this side (annex A11) */
	struct cm_qp qp;     /* local; cm_sidr_request() does not use it */
	uint8_t ack_timeout; /* code for the peer's QP; 0: that of the configuration */
	const void *private;
	size_t private_len; /* at most CMA_REQ_PRIVATE; SIDR: CMA_SIDR_PRIVATE */
};

enum cm_event_type {
	/* passive side: the user calls cm_accept() or cm_reject(), in the end
	 * cm_release(). user is the listener's. */
	CM_EVENT_REQUEST,
	/* active side: the user brings its QP to RTS, then calls cm_confirm() */
	CM_EVENT_REPLY,
	/* passive side: the RTU came, or cm_established() was called */
	CM_EVENT_ESTABLISHED,
	CM_EVENT_REJECTED,    /* status: reason of the REJ. CM_REJ_MTU: path_mtu */
	CM_EVENT_UNREACHABLE, /* no response after all retries */
	CM_EVENT_DISCONNECTED,
	/* passive side: the user calls cm_sidr_reply(), in the end cm_release() */
	CM_EVENT_SIDR_REQUEST,
	/* active side: status is an enum cm_sidr_status; qp.qpn and qkey are valid if it
	 * is 0 */
	CM_EVENT_SIDR_REPLY,
	CM_EVENT_TIMEWAIT_EXIT, /* time wait has ended: the QPN may be reused */
	CM_EVENT_COUNT
};

struct cm_event {
	enum cm_event_type type;
	int status;
	struct cm_conn *conn;
	void *user;
	/* REQUEST, REPLY: the peer's QP, with the depths exchanged: responder_resources
	 * is the number of outstanding requests that this side must accept. SIDR_REPLY:
	 * only qpn is set. */
	struct cm_qp qp;
	uint8_t ack_timeout; /* REQUEST: local ACK timeout code for this side's QP */
	/* REJECTED for CM_REJ_MTU: the largest path MTU of the peer; 0: it names none */
	uint8_t path_mtu;
	uint32_t qkey;
	struct cm_path path;
	uint64_t service_id;
	uint16_t sport;         /* REQUEST, SIDR_REQUEST: the peer's port number */
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
	bool error; /* counts losses, refusals or retries */
};
#define CM_STAT_COUNT (sizeof(struct cm_stats) / sizeof(uint64_t))
extern const struct cm_stat_row cm_stat_rows[CM_STAT_COUNT];

/* Sets the timeouts of the Linux kernel's CM, and max_conns to 4096. The caller sets
 * ca_guid and random. */
void cm_conf_default(struct cm_conf *conf);
/* Returns 0, -EINVAL or -ENOMEM. */
int cm_create(const struct cm_conf *conf, uint64_t now, struct cm **out);
/* Frees everything without sending a message. */
void cm_destroy(struct cm *cm);

/* Handles a message that came from the peer's QP 1 to QP 1 with the Q_Key of QP 1.
 * Returns CM_DROP_none, or why the message was dropped. */
enum cm_drop cm_rx(struct cm *cm, const uint8_t *bytes, size_t len,
	const struct cm_path *path, uint64_t now);
/* Returns whether a message is for a listener or a connection of this manager: another one
 * may use the same QP 1. */
bool cm_claims(
	struct cm *cm, const uint8_t *bytes, size_t len, const struct cm_path *path);
/* Returns the next message to send; false if there is none. */
bool cm_tx(struct cm *cm, struct mad *mad, struct cm_path *path);
/* Returns whether cm_tx() has a message to send. */
bool cm_has_tx(const struct cm *cm);
/* Handles timers that have expired: retries, and the end of time waits. At most CM_TIMERS_BATCH
 * at a time: the caller's thread moves packets too. */
void cm_run(struct cm *cm, uint64_t now);
/* Returns when cm_run() has something to do, or TIME_NEVER. In the past if it has left
 * something. */
uint64_t cm_deadline(const struct cm *cm);
bool cm_next_event(struct cm *cm, struct cm_event *event);
bool cm_has_event(const struct cm *cm);
const struct cm_stats *cm_stats_of(const struct cm *cm);
/* Returns the number of connections in any state. */
uint32_t cm_in_use(const struct cm *cm);
uint32_t cm_listeners(const struct cm *cm);
/* Returns the memory of a connection: of its structure, and of its places in the hash tables. */
size_t cm_conn_size(void);

/* addr: one of the local addresses; ::ffff:0.0.0.0 for all of IPv4; :: for all of IPv6;
 * NULL for all. A request goes to the listener with the closest match. backlog: limit of
 * requests that are not yet fetched and decided. Returns 0, -EADDRINUSE, -ENOSPC
 * (CM_MAX_LISTENERS), -ENOMEM, or -EINVAL (backlog is 0). */
int cm_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out);
/* As cm_listen(), for SIDR requests. A listener of one kind does not receive requests of
 * the other. */
int cm_sidr_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out);
/* Rejects the requests whose event was not fetched. The other connections of the listener
 * stay with the user. */
void cm_unlisten(struct cm_listener *listener, uint64_t now);

/* A connection belongs to the user from cm_connect(), or the event of its request, until
 * cm_release(). Returns 0, -EINVAL, or -ENOSPC (max_conns reached). */
int cm_connect(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out);
/* The following functions return -ENOTCONN if the connection is not, or no longer, in the
 * right state, and -EINVAL for invalid QP parameters or too much private data.
 *
 * cm_accept(), passive side: sends the REP. The user's QP must be in RTR before, because
 * data can follow at once. cm_reject(), either side: rejects the REQ or the REP.
 * cm_reject_mtu(), passive side: rejects the REQ because of its path MTU; path_mtu is the
 * largest one that the user can do.
 * cm_confirm(), active side: sends the RTU. The user's QP must be in RTS before. */
int cm_accept(struct cm_conn *conn, const struct cm_qp *qp, const void *private,
	size_t len, uint64_t now);
int cm_reject(struct cm_conn *conn, enum cm_reason reason, const void *private,
	size_t len, uint64_t now);
int cm_reject_mtu(struct cm_conn *conn, uint8_t path_mtu, uint64_t now);
int cm_confirm(struct cm_conn *conn, const void *private, size_t len, uint64_t now);
/* Passive side: data arrived before the RTU (IBV_EVENT_COMM_EST). */
int cm_established(struct cm_conn *conn, uint64_t now);
/* Sends a DREQ, or the DREP if the peer has sent its DREQ: the user has no more use for what comes from
 * the peer. Returns -ENOTCONN also if that was done already. */
int cm_disconnect(struct cm_conn *conn, const void *private, size_t len, uint64_t now);

/* For rules of rocade-run --faults. cm_sends(): whether the user's next call has the connection send a REP or a DREQ.
 * cm_lose(): a message of this kind that the connection has sent in this call is lost, and its timer runs as ever.
 * cm_break(): the connection, which cm_is_established(), ends as one that the peer has lost (IBA 12.9.8.3.1).
 * cm_count_fault(): the caller has caused another one. */
bool cm_sends(const struct cm_conn *conn, enum mad_attr attr);
bool cm_is_established(const struct cm_conn *conn);
void cm_lose(struct cm_conn *conn, enum mad_attr attr);
void cm_break(struct cm_conn *conn, uint64_t now);
void cm_count_fault(struct cm *cm);

/* Returns the user of the connection that has got the DREQ of this one, if that is a connection of this manager whose
 * user has not answered; else NULL. */
void *cm_awaited_user(const struct cm_conn *conn);

int cm_sidr_request(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out);
/* Passive side: sends the SIDR_REP. qpn and qkey are sent only with CM_SIDR_VALID. */
int cm_sidr_reply(struct cm_conn *conn, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const void *private, size_t len, uint64_t now);

/* Ends the user's ownership. Allowed in any state: an open connection is rejected or
 * disconnected. No event names the connection after that. */
void cm_release(struct cm_conn *conn, uint64_t now);
void cm_set_user(struct cm_conn *conn, void *user);
/* Returns whether nothing comes of the connection any more, and the user has fetched all its
 * events: it has ended, or its request was answered by a REJ or SIDR_REP. */
bool cm_has_ended(const struct cm_conn *conn);
const char *cm_state_name(const struct cm_conn *conn);

#endif
