/* SPDX-License-Identifier: BSD-3-Clause */
/* The structures of <rocade/cm.h>, for the files that implement it (verbs_cm*.c). */
#ifndef ROCADE_VERBS_VERBS_CM_H
#define ROCADE_VERBS_VERBS_CM_H

#include <rocade/cm.h>

#include "cm/cm_port.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

struct rocade_cm {
	struct verbs_ctx *ctx;
	struct cm_port *port;
	/* Two sources raise events here: the wake-ups of rocade_cm_fd(), and the event
	 * listeners of accepted QPs (COMM_EST: data arrived before the RTU). */
	struct event_queue events;
	struct async_event wakeup;
	uint16_t sport; /* source port of the next request; arbitrary */
};

struct rocade_cm_listener {
	struct rocade_cm *cm;
	struct cm_listener *listener;
	void *user;
};

struct rocade_cm_id {
	struct rocade_cm *cm;
	struct cm_conn *conn;
	struct ibv_qp *qp;
	void *user;
	struct rocade_cm_param param;
	struct cm_event request;          /* passive side: the request */
	struct cm_request asked;          /* active side: the request */
	uint8_t private[CMA_REQ_PRIVATE]; /* of `asked` */
	/* passive side: event listener that reports data arriving before the RTU */
	struct qp_listener qp_listener;
	bool listening;
	bool accepted; /* passive side: the REP was sent */
};

/* Whether the device of cm has the QP: any context of that device may have created it. */
static inline bool
cm_has_qp(const struct rocade_cm *cm, const struct ibv_qp *qp)
{
	return context_is_ours(qp->context) && to_ctx(qp->context)->dev == cm->ctx->dev;
}

/* ---- verbs_cm.c, for verbs_cm_ud.c ---- */

/* Creates a listener. ud: for datagram requests. */
int cm_listener_open(struct rocade_cm *cm, bool ud, uint16_t port, uint32_t backlog,
	void *user, struct rocade_cm_listener **out);
/* Returns EINVAL if private data of len bytes is too long, or there is none at data. */
int cm_private_check(const void *data, size_t len, size_t max);
/* Fills in the addresses and the service of a request. Returns EINVAL if port is 0, or
 * the addresses are not unicast ones of the same family. */
int cm_request_begin(struct rocade_cm *cm, const union ibv_gid *peer, uint8_t ps,
	uint16_t port, unsigned sgid_index, struct cm_request *req);

/* ---- verbs_cm_id.c, for the calls of the application and for events ---- */

/* Returns NULL, with the error text set, if there is no memory. */
struct rocade_cm_id *cm_id_new(struct rocade_cm *cm, void *user);
/* Sends id->asked. Returns 0, or a negative errno value: id->conn is unchanged. */
int cm_id_ask(struct rocade_cm_id *id);
/* Move the QP from INIT to RTR, and on to RTS, with the peer's QP attributes. Return 0 or
 * an errno value. Called without a lock, because they take the engine locks. */
int cm_qp_rtr(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned mtu);
int cm_qp_rts(const struct rocade_cm_id *id, const struct cm_event *peer,
	unsigned timeout, unsigned retry_count);
/* Returns the options of the QP for ECE (docs/protocol.md 20.2). */
struct cm_ece cm_qp_ece(struct ibv_qp *qp);
/* Agrees on the extensions that this end has offered and that the peer's options name.
 * Returns the options for the REP: zeros to a peer of another vendor. */
struct cm_ece cm_qp_agree(
	struct ibv_qp *qp, const struct cm_ece *offered, const struct cm_ece *peer);
void cm_qp_listener_add(struct rocade_cm_id *id);
/* Does nothing if the QP has no event listener. */
void cm_qp_listener_remove(struct rocade_cm_id *id);

#endif
