/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the RDMA-CM server: sessions, channels, IDs and unread events. Internal to
 * lib/ucm, whose files may read every member. A member is written by the file that has
 * the functions for it: id.c, queue.c, ucm_addr.c (ports) or ucm_request.c (deferred
 * requests). state and the parameters of a connection are written by the commands.
 */
#ifndef ROCADE_UCM_UCM_STATE_H
#define ROCADE_UCM_UCM_STATE_H

#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "ucm/abi.h"
#include "ucm/port_wait.h"
#include "ucm/ucm.h"

/* Two ephemeral ports, as port_choose() assigns them, never share a bucket. */
#define UCM_PORT_BUCKETS 32768
#define UCM_PORT_FIRST 32768 /* ephemeral ports: 32768 to 60999 */
#define UCM_PORT_COUNT 28232
#define UCM_PORT_WORDS ((UCM_PORT_COUNT + 63) / 64)

#define UCM_JOIN_BUCKETS 1024
#define UCM_DEFER_BUCKETS 1024
#define UCM_CLOSED_IDS 32   /* IDs of closed channels that are destroyed in one call */
#define UCM_SHOWN_EVENTS 32 /* events that become readable in one call */

enum ucm_state {
	UCM_IDLE,
	UCM_BOUND,
	UCM_ADDR,  /* the peer's address is resolved */
	UCM_ROUTE, /* and the route to it */
	UCM_LISTEN,
	UCM_CONNECT,  /* active: REQ sent or deferred; passive: REQ received */
	UCM_ACCEPTED, /* passive: REP sent; active: RTU sent */
	UCM_MCAST,    /* not an ID of the program, but a group that `member` has joined */
};

/* Address of one end: the name that the program is told, and the GID. */
struct ucm_addr {
	struct sockaddr_in6 sa; /* may hold a sockaddr_in instead; family 0: none */
	uint8_t gid[16];        /* all zero: any */
	bool any;
};

struct ucm_event;
struct ucm_device;
TAILQ_HEAD(ucm_devices, ucm_device);
TAILQ_HEAD(ucm_events, ucm_event);
LIST_HEAD(ucm_port_bucket, ucm_id);
LIST_HEAD(ucm_id_list, ucm_id);
TAILQ_HEAD(ucm_sessions, ucm_session);
TAILQ_HEAD(ucm_id_queue, ucm_id); /* oldest first */
TAILQ_HEAD(ucm_channels, ucm_channel);

struct ucm_id {
	LIST_ENTRY(ucm_id) link;      /* in channel->ids */
	LIST_ENTRY(ucm_id) port_link; /* in ucm->ports, if has_port */
	LIST_ENTRY(ucm_id) mcast_link;
	LIST_ENTRY(ucm_id) join_link; /* in ucm->joins, if UCM_MCAST */
	struct ucm_id_list mcasts;    /* the groups it has joined */
	struct ucm_channel *channel;
	struct ucm_id *member; /* UCM_MCAST: the ID that has joined; else NULL */
	/* It is bound to an address of this; NULL: to none. ucm_id_set_device() sets it. */
	struct ucm_device *device;
	TAILQ_ENTRY(ucm_id) device_link; /* in device->ids */
	/* NULL: none yet, or conn_ended. Charged to the session's account until the ID
	 * releases it. A connection in time wait is charged to no account: it ends when
	 * another connection needs its place. */
	struct cm_conn *conn;
	struct cm_listener *listener;
	uint64_t uid;    /* the program's own value for the ID; events return it */
	uint32_t number; /* names the ID in commands */
	/* Events fetched by the program, with those of its groups. DESTROY_ID returns it:
	 * librdmacm then waits until as many were acknowledged (rdma_ack_cm_event(3)). */
	uint32_t events_reported;
	struct ucm_events events;  /* unread events that count for it */
	struct ucm_event *request; /* unread CONNECT_REQUEST that announces it; NULL */
	enum ucm_state state;
	struct ucm_addr src, dst;
	uint16_t ps;   /* port space: RDMA_PS_* */
	uint16_t port; /* local */
	bool has_port;
	bool removed; /* its device was removed: it cannot move to another */
	bool conn_ended;
	bool disconnects; /* the program has disconnected, and so has ended the QP itself */
	bool reuse;
	bool afonly; /* a wildcard covers its own family only */
	bool afonly_set;
	bool uid_set; /* the program has set its uid */
	uint8_t qp_type;
	uint8_t tos;
	uint8_t ack_timeout; /* of its QP: the option's, else the REQ's, else the default */
	bool ack_timeout_set; /* by the option */
	uint32_t psn;         /* starting PSN, for the peer's SQ */
	struct cm_qp local;
	struct cm_qp remote;
	uint8_t path_mtu;
	bool has_remote; /* the peer's REQ or REP has come: remote is valid */
	struct ucm_option_fault fault; /* ucm_fault.h */
	/* the one of ucm->deferred that it is in; NULL: none */
	struct ucm_id_queue *deferred;
	TAILQ_ENTRY(ucm_id) deferred_link;
	TAILQ_ENTRY(ucm_id) deferred_port_link; /* in its ucm_deferred_port, too */
	uint64_t deferred_until_ns;
	/* private data of the connection request that this ID sends */
	uint8_t private[CMA_SIDR_PRIVATE];
	uint8_t private_len;
};

struct ucm_event {
	TAILQ_ENTRY(ucm_event) link; /* in events or waiting of owner_id->channel */
	bool waits;                  /* in waiting */
	/* It waits until the taker has taken what it was asked for by then; NULL: for nothing. */
	struct ucm_taker *taker;
	TAILQ_ENTRY(ucm_event) taker_link;
	TAILQ_ENTRY(ucm_event) held_link; /* in ucm->held */
	uint32_t taker_asked;
	uint64_t held_until_ns;
	TAILQ_ENTRY(ucm_event) id_link; /* in owner_id->events */
	/* ID whose events_reported counts it. That of a group's member does, too. */
	struct ucm_id *owner_id;
	struct ucm_id *new_id; /* CONNECT_REQUEST: the new ID */
	uint32_t wake;         /* number in its channel */
	struct rdma_ucm_event_resp resp;
};

struct ucm_channel {
	TAILQ_ENTRY(ucm_channel) link; /* in ucm->closing, if it is closed */
	struct ucm_session *session;
	void *owner;
	/* Its program has closed it, or has ended. It lives until its IDs are destroyed;
	 * no command names it. */
	bool closed;
	uint32_t number;
	uint32_t wakes; /* events that it has had */
	struct ucm_events events;
	/* The events from the first one on that waits for a taker. So the order stays. */
	struct ucm_events waiting;
	bool shows; /* in ucm->showing: the first of these waits for nothing */
	TAILQ_ENTRY(ucm_channel) show_link;
	struct ucm_id_list ids;
};

/* Maps numbers to pointers. A number is reused as late as possible. */
struct ucm_table {
	void **slots;
	uint32_t *
		freed_after; /* of a slot that is free again: the one that was freed next */
	uint32_t size, used;
	uint32_t fresh;          /* slots[fresh..size) were never used */
	uint32_t oldest, newest; /* of the slots that are free again; UINT32_MAX: none */
};

/* The deferred requests to some ports, oldest first. */
struct ucm_deferred_port {
	TAILQ_ENTRY(ucm_deferred_port) link; /* in ucm->woken, if next is not NULL */
	struct ucm_id_queue ids;
	struct ucm_id *next; /* to be looked at: one of these ports has got a listener */
	bool again;          /* another one has: all are to be looked at once more */
};
TAILQ_HEAD(ucm_deferred_ports, ucm_deferred_port);

struct ucm_session {
	TAILQ_ENTRY(ucm_session) link;
	struct ucm *ucm;
	void *owner;             /* not valid if it has ended */
	uint32_t channel_count;  /* with those that are closed */
	bool ended;              /* it lives until its channels are gone */
	struct account *account; /* NULL: not limited by user */
	uint32_t events;         /* unread, in all its channels */
	uint32_t uid;
	uint32_t device_index; /* UCM_NO_INDEX: that of the device */
	bool privileged;       /* may bind to ports below 1024 */
	bool shares_uid;       /* with users that the server cannot tell apart */
	uint32_t serial;       /* not 0, and not that of the last 2^32 sessions */
	struct ucm_table ids;
	struct ucm_table channels;
};

struct ucm_device {
	TAILQ_ENTRY(ucm_device) link;
	struct ucm *ucm;
	struct ucm_device_conf conf;
	struct ucm_id_queue ids;
};

struct ucm {
	struct ucm_conf conf;
	struct cm *cm;
	struct ucm_devices devices; /* in the order they were added */
	struct random_numbers psns, port_choices;
	struct random_key joins_key; /* of the hash of member and group */
	struct ucm_id_list joins[UCM_JOIN_BUCKETS];
	uint32_t id_count;
	uint64_t session_count; /* that there were */
	struct ucm_sessions sessions;
	struct ucm_id_queue
		deferred[2]; /* for UCM_DEFER_SHORT_NS, and for UCM_DEFER_NS */
	struct ucm_deferred_port deferred_ports[UCM_DEFER_BUCKETS]; /* by the port */
	struct ucm_deferred_ports woken;
	uint64_t woken_ns;           /* when the last one was added to woken */
	struct ucm_channels closing; /* closed channels; oldest first */
	struct ucm_events held;      /* events that wait for a taker; oldest first */
	struct ucm_channels showing; /* channels whose events become readable */
	struct ucm_port_bucket ports[UCM_PORT_BUCKETS];
	uint64_t ports_used
		[UCM_PORT_WORDS]; /* a bit for each ephemeral port: its bucket has IDs */
	struct port_waits port_waits;
};

/* Returns whether the ID has, or had, a connection or a request for one. */
static inline bool
ucm_id_has_conn(const struct ucm_id *id)
{
	return id->conn != NULL || id->conn_ended;
}

static inline bool
ucm_id_is_ud(const struct ucm_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

#endif
