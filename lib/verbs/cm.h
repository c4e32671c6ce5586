/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files behind <rocade/cm.h> share. */
#ifndef ROCADE_VERBS_CM_H
#define ROCADE_VERBS_CM_H

#include <rocade/cm.h>

#include "cm/port.h"
#include "verbs/objects.h"

struct rocade_cm {
	struct verbs_ctx *ctx;
	struct cm_port *port;
	/* What wakes who sleeps, and what QPs say: COMM_EST of those whose answer is out.
	 */
	struct event_queue events;
	struct async_event poke;
	uint16_t sport; /* the next one; it means nothing */
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
	struct cm_event request; /* passive: what was asked */
	struct qp_watch watch; /* passive, when watching: for data before the last word */
	bool watching;
};

/* ud: for datagrams. */
int
cm_listener_open(struct rocade_cm *cm, bool ud, uint16_t port, uint32_t backlog,
	void *user, struct rocade_cm_listener **out);
/* A structure of the application, that begins with its size, to out, which has the
 * members of now; least: bytes of those it had first. param may be NULL. EINVAL. */
int
cm_param_copy(const void *param, size_t least, void *out, size_t size);
/* EINVAL. */
int
cm_private_check(size_t len, size_t max);
/* Whom a request goes to, from where and for which service. EINVAL: nobody to ask, or not
 * from this address of ours. */
int
cm_request_begin(struct rocade_cm *cm, const union ibv_gid *peer, uint8_t ps,
	uint16_t port, unsigned sgid_index, struct cm_request *req);
/* NULL: no memory, and said so. */
struct rocade_cm_id *
cm_id_new(struct rocade_cm *cm, void *user);
/* Of an address of ours; -1: it is none any more. */
int
cm_gid_index(const struct rocade_cm *cm, const uint8_t gid[16]);
/* INIT to RTR, and on to RTS, towards what the peer said of its QP. No lock is held: the
 * gates are taken. errno values. */
int
cm_qp_rtr(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned mtu);
int
cm_qp_rts(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned timeout,
	unsigned retry_count);
void
cm_watch(struct rocade_cm_id *id);
/* Nothing when it does not. */
void
cm_unwatch(struct rocade_cm_id *id);

#endif
