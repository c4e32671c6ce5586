/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM as programs see it: IDs, event channels and the commands of rdma_cm, on top of
 * one connection manager (lib/cm) for all processes. It does no I/O and reads no clock.
 * Not thread safe: one thread at a time.
 *
 * It runs in the daemon (drivers/server/server_rdmacm.c), with one device, and in programs
 * that embed Rocade (drivers/rdmacm), with a device for each open port. librdmacm in a
 * program writes a command to /dev/infiniband/rdma_cm. drivers/preload intercepts the
 * write() and passes the command to the backend (ucm/backend.h). That is drivers/rdmacm,
 * or drivers/shm/shm_rdmacm.c, which sends it over the daemon's socket. Both ends call
 * ucm_command(). <rocade/cm.h> does not use lib/ucm: lib/verbs/verbs_cm.c calls lib/cm.
 *
 * A session is a process. It can name only its own channels and IDs, which are destroyed
 * with it. An ID is bound to a port of a port space. All sessions share the port spaces,
 * by the rules of Linux' rdma_cm.
 */
#ifndef ROCADE_UCM_UCM_H
#define ROCADE_UCM_UCM_H

#include <sys/queue.h>

#include "base/account.h"
#include "cm/cm_core.h"
#include "port/net.h"

struct ucm_limits { /* of a session */
	uint32_t ids;
	uint32_t channels;
};

/* Callbacks of the code that creates the ucm. owner is the pointer that it has passed to
 * ucm_session_create(), channel_owner that of ucm_channel_open(). */
struct ucm_ops {
	/* Returns whether the QPN belongs to the session's owner. */
	bool (*owns_qpn)(void *owner, uint32_t qpn);
	/* The channel has one more event, or several that another channel had. number: how many it has
	 * had. */
	void (*wake)(void *channel_owner, uint32_t number);
	/* Sends a message to another host. Returns false if that fails: no port, no
	 * route, no buffer or no room. NULL: there is no network. */
	bool (*send)(void *arg, const struct mad *mad, const struct cm_path *path);
	/* The connection of this QP has ended: the program is shown what has come for it. asks: the
	 * peer has ended it, and the program gets that before it learns so, because it destroys the
	 * QP then: asks for it the part of the program that takes packets, raises its `asked`, and
	 * returns it. NULL: no packets are waited for. Not called for a session that has ended. May
	 * be NULL. */
	struct ucm_taker *(*qp_ended)(void *owner, uint32_t qpn, bool asks);
	void *arg;
};

/* The part of a program that takes packets: its owner asks it to take all that has come. */
struct ucm_taker {
	TAILQ_HEAD(, ucm_event) events; /* that wait for it */
	uint32_t asked;                 /* how often */
};

/* At most so long an event, and those behind it in its channel, wait for the packets that came before it:
 * the program may be stopped. */
#define UCM_HELD_NS NS_PER_SEC

struct ucm_conf {
	struct cm_conf cm;
	struct ucm_limits limits;
	struct ucm_ops ops;
};

/* A device, with one port. */
struct ucm_device_conf {
	/* local addresses, including the link-local one, in the order of GIDs. Those of two
	 * devices differ: an address that both have is the first device's. */
	struct net_conf net;
	uint64_t guid;
	/* that of ibv_get_device_index(); UCM_NO_INDEX: the program finds the device by its
	 * GUID */
	uint32_t index;
	uint8_t path_mtu; /* enum ibv_mtu */
};

#define UCM_NO_INDEX UINT32_MAX

struct ucm;
struct ucm_device;
struct ucm_session;
struct ucm_channel;

/* Returns 0, -EINVAL or -ENOMEM. */
int ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out);
/* No session may be left (asserted), except those that have ended. Frees the devices. */
void ucm_destroy(struct ucm *ucm);

/* Adds a device. Returns 0, -EINVAL or -ENOMEM. */
int ucm_device_add(
	struct ucm *ucm, const struct ucm_device_conf *conf, struct ucm_device **out);
/* Replaces the local addresses. An ID that is bound to a removed address stays so. */
void ucm_device_set_net(struct ucm_device *device, const struct net_conf *net);
/* Takes the device from UCM_DEVICE_BATCH of the IDs that are bound to it. Their connections
 * end, they get UCM_EVENT_DEVICE_REMOVAL, and requests that the program has not seen are
 * dropped. Each causes at most one message. Returns whether there may be more of them. */
bool ucm_device_shrink(struct ucm_device *device, uint64_t now);
#define UCM_DEVICE_BATCH 128
/* Takes the device from all IDs that are bound to it, removes and frees it. */
void ucm_device_remove(struct ucm_device *device, uint64_t now);

int ucm_session_create(struct ucm *ucm, void *owner, struct ucm_session **out);
/* Sets the user of the process. Before this call it is user 0 without privilege. Only
 * IDs of one user may share a port, only a privileged user may bind to a port below 1024,
 * and a port at which a user has listened is only this user's for PORT_WAIT_NS more. */
void ucm_session_set_user(struct ucm_session *session, uint32_t uid, bool privileged);
/* Several users may have its uid, as the server sees them: a session shares no port with another one. */
void ucm_session_set_shared_uid(struct ucm_session *session);
/* The process knows the device, of which there is one, by this index. Before this call it is that of
 * ucm_device_add(). */
void ucm_session_set_device_index(struct ucm_session *session, uint32_t index);
/* Counts what the session will hold towards a user's account, which must live until the
 * session ends. */
void ucm_session_charge(struct ucm_session *session, struct account *account);
/* Ends the session, which calls no callback for its owner any more, and closes its
 * channels. */
void ucm_session_destroy(struct ucm_session *session, uint64_t now);

/* *number names the channel in commands. Returns 0, -ENOSPC (limit reached) or
 * -ENOMEM. */
int ucm_channel_open(struct ucm_session *session, void *owner, struct ucm_channel **out,
	uint32_t *number);
/* Destroys its IDs, too: a few at once, the others by ucm_run(). Until then they are
 * charged to their user. */
void ucm_channel_close(struct ucm_channel *channel, uint64_t now);

void ucm_taker_init(struct ucm_taker *taker);
/* The taker has taken the packets, as it was asked to for the upto-th time. The events that waited for
 * that become readable: some at once, the others by ucm_run(). A taker that ends has taken all. */
void ucm_taken(struct ucm *ucm, struct ucm_taker *taker, uint32_t upto, uint64_t now);

/* Result of a command: the length of its reply, and the state of the channel after it. */
struct ucm_result {
	size_t out_len;
	uint32_t wakes; /* the events up to this number are gone */
	bool pending;   /* it has an event now */
};

/*
 * Executes a command of ucm/abi.h on a channel. out has room for UCM_MAX bytes. Returns
 * 0, or the -errno with which the program's write() fails. Among them are -EAGAIN (no
 * event now), -EBADF (the session has no such channel) and -ENOENT (the channel has no
 * such ID).
 */
int ucm_command(struct ucm_session *session, uint32_t channel, uint32_t cmd,
	const void *in, size_t in_len, void *out, struct ucm_result *result,
	uint64_t now);

/* Returns whether a message is for a listener or a connection of a session. */
bool ucm_claims(
	struct ucm *ucm, const uint8_t *bytes, size_t len, const struct cm_path *path);
/* Handles a message that came to QP 1 from another host. */
void ucm_rx(struct ucm *ucm, const uint8_t *bytes, size_t len, const struct cm_path *path,
	uint64_t now);
/* ucm_run() handles what is due. ucm_deadline() returns when it has to be called next, or
 * TIME_NEVER. */
void ucm_run(struct ucm *ucm, uint64_t now);
uint64_t ucm_deadline(const struct ucm *ucm);

const struct cm_stats *ucm_stats(const struct ucm *ucm);
/* Returns the number of IDs that listen. */
uint32_t ucm_listeners(const struct ucm *ucm);
/* Return the number of IDs of all sessions, and of one. */
uint32_t ucm_ids(const struct ucm *ucm);
uint32_t ucm_session_ids(const struct ucm_session *session);

#endif
