/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM connections (IBA 12, annex A11) and datagram services for an application that
 * owns its port. They do what rdma_cm(7) does, with the same messages on the wire. The
 * peer may be librdmacm on a Linux kernel device, or hardware. docs/embedding.md shows a
 * program's loop.
 *
 * A program that is written for librdmacm uses librdmacm (rdmacm.h), which differs from this:
 *
 * - A connection manager belongs to one port. Several ports of a program may have the same addresses,
 *   in networks that are apart, while librdmacm chooses the port by its address.
 * - librdmacm keeps the RDMA-CM of the kernel, for NICs with a kernel driver, in the same process;
 *   over librocade-rdmacm it has Rocade's devices only while a port of Rocade is open.
 * - No function of libc is replaced, and neither librdmacm nor librocade-rdmacm is linked.
 * - A connection chooses its starting PSN and path MTU (struct rocade_cm_param).
 *
 * The engines of the port must be polled while connections are set up and torn down.
 *
 * Functions that return int return 0 or a positive errno value unless they say otherwise;
 * rocade_error() then describes the failure. Each of them may return ENOMEM. Any thread
 * may call them, but only one at a time for each connection manager. None waits for a
 * message of the peer. Structures and private data passed in are copied during the call.
 * A pointer that is NULL although the description does not allow it gives EINVAL, as rocade.h
 * describes; private data may be NULL if its length is 0. param may be NULL in all functions.
 * The pointer `user` belongs to the caller; events return it. Port numbers are in host
 * byte order.
 */
#ifndef ROCADE_CM_H
#define ROCADE_CM_H

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_cm;
struct rocade_cm_listener;
/* One connection, or one request for a datagram service. It belongs to the application
 * until rocade_cm_release(). */
struct rocade_cm_id;

/* Creates the connection manager of a port; *cm is valid until rocade_cm_close(). The
 * context must stay open until then. EINVAL: the context is not of a Rocade device.
 * EBUSY: the port has a connection manager already. EOPNOTSUPP: the port belongs to the
 * daemon, which manages the connections itself. */
int rocade_cm_open(struct ibv_context *context, struct rocade_cm **cm);

/* Frees cm. All listeners must have been closed and all ids released before. Connections
 * that are still being torn down end without a message to their peers. */
void rocade_cm_close(struct rocade_cm *cm);

/* Listens on a port number (1 to 65535, RDMA_PS_TCP) of all local addresses. backlog:
 * maximum number of requests that wait, because their event was not fetched yet, or
 * because the application has not accepted, rejected or released them; further requests
 * are rejected. *listener is valid until rocade_cm_unlisten(). EINVAL: port or backlog is
 * 0. EADDRINUSE: another listener has the port. ENOSPC: too many listeners. */
int rocade_cm_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener);
/* Closes a listener of either kind and frees it. Requests whose event was not fetched are
 * rejected; fetched ones stay valid. */
void rocade_cm_unlisten(struct rocade_cm_listener *listener);

/* Local parameters of a connection. A member that is 0 means 0 except where it says
 * otherwise. NULL means all zeros: no retries, no RNR retries, no READs or atomics.
 * rocade_cm_accept() ignores the members marked "connect". */
struct rocade_cm_param {
	size_t size;              /* sizeof(struct rocade_cm_param) */
	const void *private_data; /* passed to the peer's application */
	/* bytes: at most 56 in connect, 196 in accept */
	size_t private_len;
	uint8_t sgid_index; /* connect: index of the local address in the GID table */
	/* maximum number of incoming READs and atomics in progress */
	uint8_t responder_resources;
	/* maximum number of outgoing READs and atomics in progress */
	uint8_t initiator_depth;
	uint8_t retry_count; /* connect: for both QPs, 0..7; 0: no retries */
	/* for requests of the peer's QP, 0..7; 0: no retries, 7: no limit */
	uint8_t rnr_retry_count;
	/* of the local QP, 0..31, as in ibv_modify_qp(3); 0: 655.36 ms */
	uint8_t min_rnr_timer;
	/* ACK timeout of the local QP: 4.096 us * 2^timeout, 1..31. 0: 2 s in connect,
	 * the value that the peer proposed in accept */
	uint8_t timeout;
	/* connect: enum ibv_mtu; 0: the port's active MTU. A peer whose port has a smaller one
	 * may make both QPs use that. */
	uint8_t path_mtu;
	uint32_t psn; /* of the first packet that the local QP expects; 24 bits */
};

/*
 * Requests a connection to a listener of the peer. qp: an RC QP in INIT, of any context
 * of the device of cm. The QP moves to RTR and RTS in rocade_cm_next_event(), before
 * that returns ESTABLISHED; it must not be destroyed until then or until *id is released.
 * An event REJECTED or UNREACHABLE reports a failure. Before RTR the QP and that of the
 * peer agree on extensions, as ibv_query_ece(3) and ibv_set_ece(3) do for programs; the
 * request offers what ibv_query_ece() returns. If the peer rejects it with reason 35
 * (Vendor Option Not Supported), it is sent once more without options. EINVAL: a member
 * of param is out of range, port is 0, peer and the address at sgid_index are not
 * unicast ones of the same family, or the QP is not as above. ENOSPC: too many
 * connections (4096 in any state, or max_peers of the port).
 */
int rocade_cm_connect(struct rocade_cm *cm, struct ibv_qp *qp, const union ibv_gid *peer,
	uint16_t port, const struct rocade_cm_param *param, void *user,
	struct rocade_cm_id **id);

/* Accepts the request of an event REQUEST; user replaces the pointer of the listener in
 * later events. qp: an RC QP in INIT. It moves to RTR in this call, after it has
 * agreed on extensions with the peer's QP (see rocade_cm_connect()), and to RTS in
 * rocade_cm_next_event(), before that returns ESTABLISHED: when the peer has confirmed or
 * its first data has arrived. The QP must not be destroyed until ESTABLISHED was fetched
 * or id is released. ENOTCONN: the request is no longer pending. EINVAL: a member of
 * param is out of range, or the QP is not as above. EADDRNOTAVAIL: the local address of
 * the request was removed. Other values are those of ibv_modify_qp(3): the request stays
 * pending. */
int rocade_cm_accept(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_param *param, void *user);
/* Rejects the request of an event REQUEST, with reason 28 (Consumer Reject). private_len:
 * at most 148 bytes. The application still releases id. ENOTCONN: the request is no
 * longer pending. EINVAL: private_len is too large. */
int rocade_cm_reject(
	struct rocade_cm_id *id, const void *private_data, size_t private_len);

/* Disconnects. The event DISCONNECTED follows when the peer has disconnected, too, or does not answer.
 * After a DISCONNECTED by the peer it gives the peer this answer, as rocade_cm_release() does. ENOTCONN: id
 * is not connected, or both were done already. */
int rocade_cm_disconnect(struct rocade_cm_id *id);

/* Frees id, in any state. Rejects a pending request, disconnects a connection, and tells
 * the peer. No later event names id. The QP stays the caller's, and its state does not
 * change. */
void rocade_cm_release(struct rocade_cm_id *id);

/*
 * Datagram services (IBA 12.11, SIDR; RDMA_PS_UDP of librdmacm). They make no connection:
 * the client learns the QPN, Q_Key and address of a UD QP of the server, and sends to it.
 * Their port numbers are independent of those of connections. An id of this kind is valid
 * for the calls below and rocade_cm_release(); the calls for connections return ENOTCONN
 * for it, as the calls below do for an id of a connection.
 */
struct rocade_cm_ud_param {
	size_t size;              /* sizeof(struct rocade_cm_ud_param) */
	const void *private_data; /* passed to the peer's application */
	size_t private_len; /* at most 180 bytes in resolve, 136 in answer and reject */
	uint8_t sgid_index; /* resolve: index of the local address in the GID table */
};

/* As rocade_cm_listen(), for datagram requests. An event REQUEST reports each; the
 * application calls rocade_cm_ud_answer(), rocade_cm_ud_reject() or rocade_cm_release(),
 * which rejects with status 2 (rejected by the service provider). */
int rocade_cm_ud_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener);

/* Asks the peer for the QP of a service. An event RESOLVED, REJECTED or UNREACHABLE
 * follows. param may be NULL: no private data, GID index 0. EINVAL: a member of param is
 * out of range, port is 0, or peer and the address at sgid_index are not unicast ones of
 * the same family. ENOSPC: too many requests and connections (4096 in any state). */
int rocade_cm_ud_resolve(struct rocade_cm *cm, const union ibv_gid *peer, uint16_t port,
	const struct rocade_cm_ud_param *param, void *user, struct rocade_cm_id **id);

/* Answers the request of an event REQUEST with the QPN and current Q_Key of a QP. qp: a
 * UD QP in RTR, RTS, SQD or SQE. No event follows. id may be released at once: a repeated
 * request still gets the same answer. The answer does not contain the QPN that the peer
 * will send from; its first datagram does (ibv_wc.src_qp). ENOTCONN: the request is no
 * longer pending. EINVAL: a member of param is out of range, or the QP is not as
 * above. */
int rocade_cm_ud_answer(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_ud_param *param);
/* Rejects the request of an event REQUEST. status: a code of IBA 12.11.2.1: 1 (Service ID
 * not supported), 2 (rejected by the service provider) or 3 (no QP available). The
 * application still releases id. ENOTCONN: the request is no longer pending. EINVAL: a
 * member of param is out of range, or status is another code. */
int rocade_cm_ud_reject(
	struct rocade_cm_id *id, int status, const struct rocade_cm_ud_param *param);

enum rocade_cm_event_type {
	/* A request; user is the listener's. Accept, reject or release id. */
	ROCADE_CM_REQUEST,
	ROCADE_CM_ESTABLISHED, /* The connection is up: requests may be posted. */
	/* The request failed. Release id. status > 0: the code that the peer sent. For a
	 * connection it is a reject reason of IBA 12.6.7.2, for example 8 (Invalid
	 * Service ID: no listener) or 28 (Consumer Reject: by the application). For a
	 * datagram request it is a status of IBA 12.11.2.1, for example 1 (Service ID not
	 * supported: no listener). status < 0: -errno of the local QP's transition, or
	 * -EADDRNOTAVAIL: the local address was removed. */
	ROCADE_CM_REJECTED,
	/* The peer did not answer, after all retries. Release id. */
	ROCADE_CM_UNREACHABLE,
	/* Either side has disconnected. Move the QP to ERR, and call rocade_cm_disconnect() or
	 * rocade_cm_release(): the peer waits for that. */
	ROCADE_CM_DISCONNECTED,
	/* The time wait has ended: the QPN may be used for another connection. */
	ROCADE_CM_TIMEWAIT_EXIT,
	/* A datagram service was found: qpn, qkey, peer and sgid_index tell where to
	 * send. */
	ROCADE_CM_RESOLVED
};

struct rocade_cm_event {
	enum rocade_cm_event_type type;
	/* REJECTED: see there; UNREACHABLE: -ETIMEDOUT; other types: 0 */
	int status;
	struct rocade_cm_id *id;
	void *user;
	union ibv_gid peer; /* address of the peer */
	uint16_t port; /* REQUEST: the requester's own port number; may be any value */
	/* from the peer; NULL: none. Valid until id is released */
	const void *private_data;
	/* length of the message's field: the peer's data and zeros behind it */
	size_t private_len;
	/* REQUEST: READs and atomics that the peer wants to have in progress */
	uint8_t responder_resources;
	/* REQUEST: READs and atomics in progress that the peer accepts */
	uint8_t initiator_depth;
	/* GID table index of the local address; 255: it was removed */
	uint8_t sgid_index;
	uint32_t qpn;  /* RESOLVED: the peer's QP */
	uint32_t qkey; /* RESOLVED: the Q_Key of that QP */
};

/*
 * Returns a descriptor for poll(2) and epoll(7). It is readable when there may be events;
 * the application then calls rocade_cm_next_event() until that returns EAGAIN. The
 * descriptor belongs to cm: it must not be read or closed. The engines must be polled
 * meanwhile, by any thread. Applications that never call this function have no overhead
 * from it. -1: cm is NULL.
 */
int rocade_cm_fd(struct rocade_cm *cm);

/* Fetches the next event, and moves the QP of a new connection to RTR and RTS. EAGAIN:
 * there is none. */
int rocade_cm_next_event_sized(
	struct rocade_cm *cm, struct rocade_cm_event *event, size_t size);
static inline int
rocade_cm_next_event(struct rocade_cm *cm, struct rocade_cm_event *event)
{
	return rocade_cm_next_event_sized(cm, event, sizeof(*event));
}

/* Returns a constant string, for example "request"; "unknown" for other values. */
const char *rocade_cm_event_name(enum rocade_cm_event_type type);

/* Fills up to n rows with the manager's counters. Returns how many there are. */
unsigned rocade_cm_stats_sized(
	struct rocade_cm *cm, struct rocade_stat *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_cm_stats(struct rocade_cm *cm, struct rocade_stat *rows, unsigned n)
{
	return rocade_cm_stats_sized(cm, rows, n, sizeof(*rows));
}

#ifdef __cplusplus
}
#endif

#endif
