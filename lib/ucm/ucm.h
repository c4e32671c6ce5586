/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM as programs see it: ids, channels of events, the commands of rdma_cm, over one
 * connection manager (lib/cm) for all processes. It does no I/O and reads no clock. One
 * thread at a time.
 *
 * A session is a process: it names its own channels and ids only, and all it has goes
 * with it. An id is bound to a port of a port space, which all sessions share.
 */
#ifndef ROCADE_UCM_UCM_H
#define ROCADE_UCM_UCM_H

#include "cm/cm.h"
#include "port/neigh.h"

struct ucm_limits { /* of a session */
	uint32_t ids;
	uint32_t channels;
};

/* What is the owner's to know. */
struct ucm_ops {
	/* Whether the QPN is that of the session's owner. */
	bool (*owns_qpn)(void *owner, uint32_t qpn);
	/* The channel, which had no event, has one: the number-th time. */
	void (*wake)(void *channel_owner, uint32_t number);
	/* A message for another machine; false: nobody leads there. NULL: there is none.
	 */
	bool (*send)(void *arg, const struct mad *mad, const struct cm_path *path);
	void *arg;
};

struct ucm_conf {
	struct net_conf
		net; /* our addresses, the link-local one too, in the order of GIDs */
	struct cm_conf cm;
	uint8_t path_mtu; /* enum ibv_mtu */
	struct ucm_limits limits;
	struct ucm_ops ops;
};

struct ucm;
struct ucm_session;
struct ucm_channel;

/* -EINVAL, -ENOMEM. */
int
ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out);
/* Other addresses; what is bound to one that went stays so. */
void
ucm_set_net(struct ucm *ucm, const struct net_conf *net);
/* No session left (asserted). */
void
ucm_destroy(struct ucm *ucm);

int
ucm_session_create(struct ucm *ucm, void *owner, struct ucm_session **out);
void
ucm_session_destroy(struct ucm_session *session, uint64_t now);

/* number: what commands call it. -ENOSPC: the limit; -ENOMEM. */
int
ucm_channel_open(struct ucm_session *session, void *owner, struct ucm_channel **out,
	uint32_t *number);
/* Its ids go with it. */
void
ucm_channel_close(struct ucm_channel *channel, uint64_t now);

/* The state of a channel behind a command. */
struct ucm_result {
	size_t out_len;
	uint32_t wakes; /* so often it had its first event */
	bool pending;   /* it has one now */
};

/*
 * A command of ucm/abi.h on a channel; out: room for UCM_MAX bytes. 0, or the -errno that
 * the write() of it is to have: -EAGAIN: no event now; -EBADF: no channel of the
 * session's; -ENOENT: no id of the channel's.
 */
int
ucm_command(struct ucm_session *session, uint32_t channel, uint32_t cmd, const void *in,
	size_t in_len, void *out, struct ucm_result *result, uint64_t now);

/* A message that came to QP 1 from another machine. */
void
ucm_rx(struct ucm *ucm, const uint8_t *bytes, size_t len, const struct cm_path *path,
	uint64_t now);
/* What is due; when it is to be called again: TIME_NEVER. */
void
ucm_run(struct ucm *ucm, uint64_t now);
uint64_t
ucm_deadline(const struct ucm *ucm);

const struct cm_stats *
ucm_stats(const struct ucm *ucm);
/* Ids that listen. */
uint32_t
ucm_listeners(const struct ucm *ucm);
/* Ids of all sessions; of one. */
uint32_t
ucm_ids(const struct ucm *ucm);
uint32_t
ucm_session_ids(const struct ucm_session *session);

#endif
