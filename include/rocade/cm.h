/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections by RDMA-CM (IBA 12, annex A11), and services of datagrams, for a program
 * that has a port of its own: what rdma_cm(7) is between other machines, on the wire the
 * same. The peer may be the Linux kernel's librdmacm, or hardware.
 *
 * The port's engines do the work: they must run while connections are made and ended.
 * Functions return 0 or a positive errno value, rocade_error() has a sentence. Any thread
 * may call them, but one at a time for each manager.
 */
#ifndef ROCADE_CM_H
#define ROCADE_CM_H

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_cm;
struct rocade_cm_listener;
struct rocade_cm_id; /* a connection, or a request for a service of datagrams, from
		      * its beginning to rocade_cm_release() */

/* One for each port. EBUSY: it has one; EOPNOTSUPP: the port is the daemon's. The context
 * stays open until rocade_cm_close(). */
int
rocade_cm_open(struct ibv_context *context, struct rocade_cm **cm);

/* All listeners have been closed and all connections released. Peers of connections that
 * are still on their way out hear nothing. */
void
rocade_cm_close(struct rocade_cm *cm);

/* On a TCP-like port number (RDMA_PS_TCP), on all addresses. backlog: requests that
 * nobody has fetched and decided on; more are rejected. EADDRINUSE; EINVAL: port or
 * backlog 0; ENOSPC. */
int
rocade_cm_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener);
/* Of either kind. Requests whose event was not fetched are rejected. */
void
rocade_cm_unlisten(struct rocade_cm_listener *listener);

/* What an end says of itself. All zero will do. */
struct rocade_cm_param {
	size_t size; /* sizeof(struct rocade_cm_param) */
	const void
		*private_data; /* for the peer's program: 56 bytes with a request, 196 */
	size_t private_len;    /* with an answer, 148 with a rejection */
	uint8_t sgid_index;    /* connect: our address */
	uint8_t responder_resources; /* READs and atomics at once that we answer, */
	uint8_t initiator_depth;     /* and that we have under way */
	uint8_t retry_count;         /* connect: 0..7 */
	uint8_t rnr_retry_count;     /* 0..7 */
	uint8_t min_rnr_timer;       /* of our QP */
	uint8_t timeout;             /* of our QP, 0: 2 s, as CMs have it */
	uint8_t path_mtu;            /* connect: enum ibv_mtu, 0: the port's */
	uint32_t psn;                /* of the first packet that we receive */
};

/*
 * Asks the peer for a connection. qp: an RC QP in INIT; it goes to RTR and RTS by itself
 * when the peer accepts, before the event ESTABLISHED. EINVAL: a member of param, a port
 * 0, the QP; ENOSPC: too many connections.
 */
int
rocade_cm_connect(struct rocade_cm *cm, struct ibv_qp *qp, const union ibv_gid *peer,
	uint16_t port, const struct rocade_cm_param *param, void *user,
	struct rocade_cm_id **id);

/* Answers a REQUEST. The QP, RC in INIT, goes to RTR, and to RTS when the peer says that it
 * is ready or its data comes first: before the event ESTABLISHED. Until that is fetched,
 * or id released, it is not to be destroyed. ENOTCONN: the peer has
 * given up meanwhile; EINVAL; or what ibv_modify_qp(3) says: the request still waits for
 * an answer. */
int
rocade_cm_accept(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_param *param, void *user);
int
rocade_cm_reject(struct rocade_cm_id *id, const void *private_data, size_t private_len);

/* ENOTCONN: it is not connected, or ending already. The event DISCONNECTED follows. */
int
rocade_cm_disconnect(struct rocade_cm_id *id);

/* In any state: the peer of what is open is told. No event names it any more. The QP is
 * the caller's, in whatever state it is. */
void
rocade_cm_release(struct rocade_cm_id *id);

/*
 * Services of datagrams (IBA 12.11; RDMA_PS_UDP of librdmacm). Nothing is connected: who
 * asks hears of a UD QP, its Q_Key and its address, and sends to it. Port numbers are
 * apart from those of connections. Ids of this kind know these calls and
 * rocade_cm_release(); the calls for connections are ENOTCONN, as these are for ids of
 * connections.
 */
struct rocade_cm_ud_param {
	size_t size;              /* sizeof(struct rocade_cm_ud_param) */
	const void *private_data; /* for the peer's program: 180 bytes with a question, */
	size_t private_len;       /* 136 with an answer, or a rejection */
	uint8_t sgid_index;       /* resolve: our address */
};

/* As rocade_cm_listen(). Its requests are REQUEST events, for rocade_cm_ud_answer(),
 * rocade_cm_ud_reject() or rocade_cm_release(), which rejects with status 2. */
int
rocade_cm_ud_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener);

/* Asks who serves this port there: RESOLVED, REJECTED or UNREACHABLE says it. param: NULL
 * will do. EINVAL: a member of param, a port 0, the address; ENOSPC: too many. */
int
rocade_cm_ud_resolve(struct rocade_cm *cm, const union ibv_gid *peer, uint16_t port,
	const struct rocade_cm_ud_param *param, void *user, struct rocade_cm_id **id);

/* Answers a REQUEST with a QP, UD, in RTR or later, and with the Q_Key that it has now. No
 * event follows; id may be released at once, and the answer is repeated to who asks again.
 * What QPN the peer sends from its first datagram says (ibv_wc.src_qp). ENOTCONN: it waits
 * for no answer (any more); EINVAL: a member of param, the QP. */
int
rocade_cm_ud_answer(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_ud_param *param);
/* status, of IBA 12.11.2.1: 1: no such service, 2: the program rejects it, 3: no QP for it.
 * The same errors; EINVAL: another status. */
int
rocade_cm_ud_reject(struct rocade_cm_id *id, int status,
	const struct rocade_cm_ud_param *param);

enum rocade_cm_event_type {
	ROCADE_CM_REQUEST,      /* user is the listener's: accept, reject or release id */
	ROCADE_CM_ESTABLISHED,  /* requests may be posted */
	ROCADE_CM_REJECTED,     /* status: the reason of IBA 12.6.7.2; 28: its program, 8:
				 * nobody listens. Negative: -errno of our QP's transition.
				 * Of datagrams: that of IBA 12.11.2.1, 1: nobody listens;
				 * -EADDRNOTAVAIL: our address has gone */
	ROCADE_CM_UNREACHABLE,  /* no answer after all retries */
	ROCADE_CM_DISCONNECTED, /* by either end: take the QP to ERR */
	ROCADE_CM_GONE, /* the time wait is over: the QPN may serve another connection */
	ROCADE_CM_RESOLVED /* qpn, qkey, peer and sgid_index: where to send datagrams */
};

struct rocade_cm_event {
	enum rocade_cm_event_type type;
	int status;
	struct rocade_cm_id *id;
	void *user;
	union ibv_gid peer;
	uint16_t port;            /* REQUEST: the peer's, it may mean nothing */
	const void *private_data; /* the peer's, NULL: none. Until id is released */
	size_t private_len; /* all there is room for: what the peer gave, and zeros */
	uint8_t responder_resources; /* REQUEST: what the peer would have us answer at
					once, */
	uint8_t initiator_depth;     /* and what it answers */
	uint8_t sgid_index; /* which of our addresses the peer knows; 255: one that we no
			     * longer have */
	uint32_t qpn;       /* RESOLVED: the peer's QP, */
	uint32_t qkey;      /* and its Q_Key */
};

/*
 * A descriptor that is readable when there may be events, for poll(2) and epoll(7): then
 * rocade_cm_next_event(). Its owner is the manager; nothing is read from it. Who never asks
 * for it pays nothing. The engines, or somebody who polls them, have to run meanwhile.
 */
int
rocade_cm_fd(struct rocade_cm *cm);

/* EAGAIN: none. */
int
rocade_cm_next_event(struct rocade_cm *cm, struct rocade_cm_event *event);

const char *
rocade_cm_event_name(enum rocade_cm_event_type type);

/* Fills up to n rows, returns how many there are. */
unsigned
rocade_cm_stats(struct rocade_cm *cm, struct rocade_stat *rows, unsigned n);

#ifdef __cplusplus
}
#endif

#endif
