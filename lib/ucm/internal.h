/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/ucm tell each other. */
#ifndef ROCADE_UCM_INTERNAL_H
#define ROCADE_UCM_INTERNAL_H

#include <sys/queue.h>

#include "ucm/abi.h"
#include "ucm/ucm.h"

#define UCM_PORT_BUCKETS 32768 /* none is shared by two ports that port_choose() gives   \
				*/
#define UCM_HOLD_NS (500 * NS_PER_MS)
#define UCM_HOLD_SHORT_NS (200 * NS_PER_MS)
#define UCM_EVENTS_PER_ID 8 /* that a program may leave where they are */

enum ucm_state {
	UCM_IDLE,
	UCM_BOUND,
	UCM_ADDR, /* the peer's address is resolved */
	UCM_ROUTE,
	UCM_LISTEN,
	UCM_CONNECT,  /* asked, or being asked */
	UCM_ACCEPTED, /* passive: answered; active: confirmed */
	UCM_MCAST,    /* no id at all: a group that one has joined */
};

/* An end of a connection: as the program said it, and as a GID. */
struct ucm_addr {
	struct sockaddr_in6 sa; /* or a sockaddr_in at its beginning; family 0: none */
	uint8_t gid[16];        /* all zero: of any */
	bool any;
};

struct ucm_event;
TAILQ_HEAD(ucm_events, ucm_event);
LIST_HEAD(ucm_port_bucket, ucm_id);
LIST_HEAD(ucm_id_list, ucm_id);
TAILQ_HEAD(ucm_sessions, ucm_session);
TAILQ_HEAD(ucm_held, ucm_id);

struct ucm_id {
	LIST_ENTRY(ucm_id) link;      /* of its channel */
	LIST_ENTRY(ucm_id) port_link; /* of its port, when has_port */
	LIST_ENTRY(ucm_id) mcast_link;
	struct ucm_id_list mcasts; /* the groups it has joined */
	struct ucm_channel *channel;
	struct ucm_id *member; /* UCM_MCAST: who has joined */
	struct cm_conn *conn;
	struct cm_listener *listener;
	uint64_t uid;
	uint32_t number;
	uint32_t events_reported;
	struct ucm_events events;  /* that wait in its channel and count for it */
	struct ucm_event *request; /* by which its program will hear of it; NULL */
	enum ucm_state state;
	struct ucm_addr src, dst;
	uint16_t ps;
	uint16_t port; /* ours */
	bool has_port;
	bool on_device; /* its address is one of ours */
	bool reuse;
	bool afonly; /* a wildcard means its own family only */
	bool afonly_set;
	bool accepted; /* its program has given it an uid */
	uint8_t qp_type;
	uint8_t tos;
	uint8_t ack_timeout; /* 0: not set */
	uint32_t psn;        /* that the peer is to begin with */
	struct cm_qp local;
	struct cm_qp remote;
	uint8_t path_mtu;
	bool has_remote;
	bool held; /* in the list of those that wait for a listener */
	TAILQ_ENTRY(ucm_id) held_link;
	uint64_t held_until_ns;
	uint8_t private[CMA_SIDR_PRIVATE]; /* of its own request */
	uint8_t private_len;
};

struct ucm_event {
	TAILQ_ENTRY(ucm_event) link;    /* of its channel */
	TAILQ_ENTRY(ucm_event) id_link; /* of counted */
	struct ucm_id *counted;         /* in whose events_reported */
	struct ucm_id *fresh;           /* CONNECT_REQUEST: the new id */
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

/* Numbers of things, each a pointer; a number is not used again soon. */
struct ucm_table {
	void **slots;
	uint32_t size, used, next;
};

struct ucm_session {
	TAILQ_ENTRY(ucm_session) link;
	struct ucm *ucm;
	void *owner;
	uint32_t events; /* that wait in its channels */
	struct ucm_table ids;
	struct ucm_table channels;
};

struct ucm {
	struct ucm_conf conf;
	struct cm *cm;
	uint64_t rand;
	uint32_t id_count;
	struct ucm_sessions sessions;
	struct ucm_held held;
	struct ucm_port_bucket ports[UCM_PORT_BUCKETS];
};

/* A command being served. */
struct ucm_call {
	struct ucm *ucm;
	struct ucm_session *session;
	struct ucm_channel *channel;
	const void *in; /* UCM_MAX bytes, zero behind what was sent */
	size_t in_len;
	void *out; /* zero */
	uint64_t now;
};

#define UCM(name, handler, in, least, out) int ucm_do_##handler(struct ucm_call *call);
#define UCM_SILENT(name, handler, in, least) int ucm_do_##handler(struct ucm_call *call);
#include "ucm/commands.def"

/* id.c: number 0 is none. */
int
ucm_table_init(struct ucm_table *t, uint32_t size);
void
ucm_table_fini(struct ucm_table *t);
int
ucm_table_add(struct ucm_table *t, void *what, uint32_t *number);
void *
ucm_table_find(const struct ucm_table *t, uint32_t number);
void
ucm_table_remove(struct ucm_table *t, uint32_t number);

int
ucm_id_create(struct ucm_channel *channel, uint16_t ps, struct ucm_id **out);
/* With what it has joined, what waits for it, and who has asked it in vain. */
void
ucm_id_destroy(struct ucm_id *id, uint64_t now);
/* Of the call's channel, no group; NULL. */
struct ucm_id *
ucm_id_find(const struct ucm_call *call, uint32_t number);
bool
ucm_id_is_ud(const struct ucm_id *id);
uint64_t
ucm_rand(struct ucm *ucm);

/* addr.c */
/* -EAFNOSUPPORT, -EINVAL. */
int
ucm_addr_read(struct ucm *ucm, const void *sa, size_t len, struct ucm_addr *out);
/* As programs see a GID and a port. */
void
ucm_addr_make(struct ucm_addr *out, const uint8_t gid[16], uint16_t port);
bool
ucm_is_ours(const struct ucm *ucm, const uint8_t gid[16]);
/* The index of one of our addresses in the table of GIDs; -1: it is none any more. */
int
ucm_gid_index(const struct ucm *ucm, const uint8_t gid[16]);
/* To the address, and its port, or one that is free for 0. -EADDRINUSE, -EADDRNOTAVAIL.
 */
int
ucm_bind(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *addr);
void
ucm_unbind(struct ucm_id *id);
uint64_t
ucm_service_id(uint16_t ps, uint16_t port);
uint16_t
ucm_addr_port(const struct ucm_addr *addr);

/* Whether who is bound there hears what is for gid. */
bool
ucm_addr_serves(const struct ucm_id *id, const uint8_t gid[16]);

/* Those that have the port, and others. */
struct ucm_port_bucket *
ucm_port_bucket(struct ucm *ucm, uint16_t port);

/* connect.c */
enum cm_transport
ucm_transport(const struct ucm_id *id);
/* The id's request, with what was kept of it. -errno; -EADDRNOTAVAIL: its address has
 * gone. */
int
ucm_connect(struct ucm *ucm, struct ucm_id *id, uint64_t now);

/* hold.c: whether the id's request waits for a listener. */
bool
ucm_hold(struct ucm *ucm, struct ucm_id *id, uint64_t now);
void
ucm_hold_forget(struct ucm *ucm, struct ucm_id *id);
void
ucm_hold_listening(struct ucm *ucm, const struct ucm_id *listener, uint64_t now);
/* Those that have waited long enough. */
void
ucm_hold_run(struct ucm *ucm, uint64_t now);

/* queue.c */
/* An event that its owner has not, with the id's number and uid; NULL: no memory. */
struct ucm_event *
ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status);
/* Into the queue of the id's channel. */
void
ucm_event_put(struct ucm_event *event);
/* Those of the id are no more; requests that wait for it go. */
void
ucm_events_purge(struct ucm_id *id, uint64_t now);
void
ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to);

/* event.c: hands over messages and events until there are none. */
void
ucm_pump(struct ucm *ucm, uint64_t now);

/* qp_attr.c */
/* -EADDRNOTAVAIL: the id's address has gone. */
int
ucm_ah_fill(const struct ucm_id *id, struct ib_uverbs_ah_attr *ah);

#endif
