/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/ucm. */
#ifndef ROCADE_UCM_UCM_INTERNAL_H
#define ROCADE_UCM_UCM_INTERNAL_H

#include <sys/queue.h>

#include "ucm/abi.h"
#include "ucm/ucm.h"

/* Two ephemeral ports, as port_choose() assigns them, never share a bucket. */
#define UCM_PORT_BUCKETS 32768
/* how long a request to a port without a listener is deferred: if the port is bound,
 * and if it is not */
#define UCM_DEFER_NS (500 * NS_PER_MS)
#define UCM_DEFER_SHORT_NS (200 * NS_PER_MS)
/* limit of unread events: on average per possible ID of a session */
#define UCM_EVENTS_PER_ID 8

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

/* Address of one end, as the program gave it and as a GID. */
struct ucm_addr {
	struct sockaddr_in6 sa; /* may hold a sockaddr_in instead; family 0: none */
	uint8_t gid[16];        /* all zero: any */
	bool any;
};

struct ucm_event;
TAILQ_HEAD(ucm_events, ucm_event);
LIST_HEAD(ucm_port_bucket, ucm_id);
LIST_HEAD(ucm_id_list, ucm_id);
TAILQ_HEAD(ucm_sessions, ucm_session);
TAILQ_HEAD(ucm_deferred, ucm_id);

struct ucm_id {
	LIST_ENTRY(ucm_id) link;      /* in channel->ids */
	LIST_ENTRY(ucm_id) port_link; /* in ucm->ports, if has_port */
	LIST_ENTRY(ucm_id) mcast_link;
	struct ucm_id_list mcasts; /* the groups it has joined */
	struct ucm_channel *channel;
	struct ucm_id *member; /* UCM_MCAST: the ID that has joined */
	struct cm_conn *conn;
	struct cm_listener *listener;
	uint64_t uid;    /* the program's own value for the ID; events return it */
	uint32_t number; /* names the ID in commands */
	/* Events fetched by the program. DESTROY_ID returns it: librdmacm then waits
	 * until as many were acknowledged (rdma_ack_cm_event(3)). */
	uint32_t events_reported;
	struct ucm_events events;  /* unread events that count for it */
	struct ucm_event *request; /* unread CONNECT_REQUEST that announces it; NULL */
	enum ucm_state state;
	struct ucm_addr src, dst;
	uint16_t ps;   /* port space: RDMA_PS_* */
	uint16_t port; /* local */
	bool has_port;
	bool on_device; /* bound to one of the local addresses */
	bool reuse;
	bool afonly; /* a wildcard covers its own family only */
	bool afonly_set;
	bool uid_set; /* the program has set its uid */
	uint8_t qp_type;
	uint8_t tos;
	uint8_t ack_timeout; /* 0: not set */
	uint32_t psn;        /* starting PSN, for the peer's SQ */
	struct cm_qp local;
	struct cm_qp remote;
	uint8_t path_mtu;
	bool has_remote; /* the peer's REQ or REP has come: remote is valid */
	bool deferred;   /* in ucm->deferred */
	TAILQ_ENTRY(ucm_id) deferred_link;
	uint64_t deferred_until_ns;
	/* private data of the connection request that this ID sends */
	uint8_t private[CMA_SIDR_PRIVATE];
	uint8_t private_len;
};

struct ucm_event {
	TAILQ_ENTRY(ucm_event) link;    /* in owner_id->channel->events */
	TAILQ_ENTRY(ucm_event) id_link; /* in owner_id->events */
	struct ucm_id *owner_id;        /* ID whose events_reported counts it */
	struct ucm_id *new_id;          /* CONNECT_REQUEST: the new ID */
	struct rdma_ucm_event_resp resp;
};

struct ucm_channel {
	struct ucm_session *session;
	void *owner;
	uint32_t number;
	uint32_t wakes;
	struct ucm_events events;
	struct ucm_id_list ids;
};

/* Maps numbers to pointers. A number is reused as late as possible. */
struct ucm_table {
	void **slots;
	uint32_t size, used, next;
};

struct ucm_session {
	TAILQ_ENTRY(ucm_session) link;
	struct ucm *ucm;
	void *owner;
	uint32_t events; /* unread, in all its channels */
	struct ucm_table ids;
	struct ucm_table channels;
};

struct ucm {
	struct ucm_conf conf;
	struct cm *cm;
	uint64_t rand;
	uint32_t id_count;
	struct ucm_sessions sessions;
	struct ucm_deferred deferred;
	struct ucm_port_bucket ports[UCM_PORT_BUCKETS];
};

/* A command in progress. */
struct ucm_call {
	struct ucm *ucm;
	struct ucm_session *session;
	struct ucm_channel *channel;
	const void *in; /* UCM_MAX bytes, zero behind the command */
	size_t in_len;
	void *out; /* UCM_MAX bytes, zeroed */
	uint64_t now;
};

#define UCM(name, handler, in, least, out) int ucm_do_##handler(struct ucm_call *call);
#define UCM_NO_REPLY(name, handler, in, least)                                           \
	int ucm_do_##handler(struct ucm_call *call);
#include "ucm/commands.def"

/* id.c: 0 is not a valid number. */
int ucm_table_init(struct ucm_table *t, uint32_t size);
void ucm_table_fini(struct ucm_table *t);
int ucm_table_add(struct ucm_table *t, void *what, uint32_t *number);
void *ucm_table_find(const struct ucm_table *t, uint32_t number);
void ucm_table_remove(struct ucm_table *t, uint32_t number);

int ucm_id_create(struct ucm_channel *channel, uint16_t ps, struct ucm_id **out);
/* Destroys the ID. Also leaves its groups, drops its unread events, rejects requests to
 * it that the program has not seen, and cancels its own deferred request. */
void ucm_id_destroy(struct ucm_id *id, uint64_t now);
/* Returns the ID with this number, or NULL: it must be in the channel of the call, known
 * to the program, and no group. */
struct ucm_id *ucm_id_find(const struct ucm_call *call, uint32_t number);
bool ucm_id_is_ud(const struct ucm_id *id);

/* ucm_addr.c */
/* Returns 0 or -EAFNOSUPPORT. */
int ucm_addr_read(struct ucm *ucm, const void *sa, size_t len, struct ucm_addr *out);
/* Builds the socket address of a GID and a port. */
void ucm_addr_make(struct ucm_addr *out, const uint8_t gid[16], uint16_t port);
bool ucm_is_local(const struct ucm *ucm, const uint8_t gid[16]);
/* Returns the index of a local address in the GID table; -1 if it was removed. */
int ucm_gid_index(const struct ucm *ucm, const uint8_t gid[16]);
/* Binds to the address and its port; port 0: to a free one. Returns 0, -EADDRINUSE or
 * -EADDRNOTAVAIL. */
int ucm_bind(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *addr);
void ucm_unbind(struct ucm_id *id);
uint64_t ucm_service_id(uint16_t ps, uint16_t port);
uint16_t ucm_addr_port(const struct ucm_addr *addr);

/* Returns whether the ID, if bound to the right port, receives requests to gid. */
bool ucm_addr_serves(const struct ucm_id *id, const uint8_t gid[16]);

/* Returns the bucket of IDs that are bound to the port (and to ports with the same
 * hash). */
struct ucm_port_bucket *ucm_port_bucket(struct ucm *ucm, uint16_t port);

/* ucm_connect.c */
enum cm_transport ucm_transport(const struct ucm_id *id);
/* Sends the connection request of the ID, from its stored parameters. Returns 0 or
 * -errno; -EADDRNOTAVAIL if its address was removed. */
int ucm_connect(struct ucm *ucm, struct ucm_id *id, uint64_t now);

/* ucm_defer.c: defers the request of the ID if its destination is local and has no
 * listener yet. Returns whether it did. */
bool ucm_defer_request(struct ucm *ucm, struct ucm_id *id, uint64_t now);
void ucm_defer_cancel(struct ucm *ucm, struct ucm_id *id);
/* Sends the deferred requests that the new listener receives. */
void ucm_defer_on_listen(struct ucm *ucm, const struct ucm_id *listener, uint64_t now);
/* Sends the requests whose time is over. */
void ucm_defer_run(struct ucm *ucm, uint64_t now);

/* queue.c */
/* Creates an event, not yet queued, with the number and uid of the ID. Returns NULL
 * without memory, or if the session has too many unread events. */
struct ucm_event *ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status);
/* Appends it to the queue of the ID's channel. */
void ucm_event_put(struct ucm_event *event);
/* Drops the unread events of the ID, with the new IDs that they announce, and the event
 * that announces the ID itself. */
void ucm_events_purge(struct ucm_id *id, uint64_t now);
void ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to);

/* ucm_event.c: sends the messages that lib/cm has queued, and turns its events into
 * events of IDs, until there are no more. */
void ucm_pump(struct ucm *ucm, uint64_t now);

/* qp_attr.c */
/* Returns 0, or -EADDRNOTAVAIL if the address of the ID was removed. */
int ucm_ah_fill(const struct ucm_id *id, struct ib_uverbs_ah_attr *ah);

#endif
