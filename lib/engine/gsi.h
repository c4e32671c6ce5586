/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The state of QP 1 of a device, for the files of lib/engine; its user. */
#ifndef ROCADE_ENGINE_GSI_STATE_H
#define ROCADE_ENGINE_GSI_STATE_H

#include <pthread.h>

#include "port/ext_query.h"

/* The two that may use QP 1 of a device at the same time. */
enum gsi_user_id {
	GSI_USER_CM,     /* that of <rocade/cm.h> */
	GSI_USER_RDMACM, /* that of librdmacm */
	GSI_USERS
};

struct gsi_user {
	/* As rx(): returns whether the message is for a listener or a connection of this user. */
	bool (*claims)(void *arg, const struct gsi_msg *msg);
	/* Called by any engine's thread with its lock held. The message is GSI_LEN bytes
	 * long and was sent to an address of the port, with the Q_Key of QP 1 and a P_Key
	 * that matches. */
	void (*rx)(void *arg, const struct gsi_msg *msg, uint64_t now);
	/* Called at or after the time *due: fills in the next message to be sent. False:
	 * there is none now. */
	bool (*tx)(void *arg, struct gsi_msg *msg, uint64_t now);
	void *arg;
	/* Written by the user, relaxed, before it calls dev_gsi_due(): an engine may see it a
	 * pass late. TIME_NEVER: nothing to send. */
	const uint64_t *due;
};

#define GSI_UNRESOLVED 32 /* messages that wait for neighbour resolution */

struct gsi {
	/* Gets the messages of all classes but EXT_MAD_CLASS. rx NULL: there is none. Changed
	 * with all engine locks held. */
	struct gsi_user user;
	/* when unresolved messages of the user are tried again; TIME_NEVER: there are none */
	uint64_t retry_ns;
	uint32_t psn;
	unsigned unresolved_count;
	struct gsi_msg unresolved[GSI_UNRESOLVED];

	/* dev_gsi.c: all users. The engines see one, `user`: it stands for both if there are
	 * two. Changed with all engine locks held and users_lock. */
	struct gsi_user users[GSI_USERS]; /* rx NULL: there is none */
	uint64_t users_due;               /* the earlier one of two */
	pthread_mutex_t users_lock;       /* taken with an engine lock held */

	/* engine_ext.c: the agent of class EXT_MAD_CLASS, for all engines. */
	pthread_mutex_t ext_lock; /* protects ext; taken with an engine lock held */
	struct ext_query *ext;
	/* of ext, as of the last release of ext_lock: read relaxed, without it */
	uint64_t ext_due;
	uint32_t ext_generation;
};

/* Return when the user, and when the user or the agent, has next something to send; TIME_NEVER:
 * nothing. */
static inline uint64_t
gsi_user_due(const struct gsi *gsi)
{
	return RTE_MIN(gsi->retry_ns, __atomic_load_n(gsi->user.due, __ATOMIC_RELAXED));
}

static inline uint64_t
gsi_due(const struct gsi *gsi)
{
	return RTE_MIN(
		gsi_user_due(gsi), __atomic_load_n(&gsi->ext_due, __ATOMIC_RELAXED));
}

/* ---- Control path ---- */

/* ext_off, ext_hosts: as for ext_query_create_sized(). Returns 0 or -ENOMEM. */
int gsi_create(const struct random_key *random, bool ext_off, uint32_t ext_hosts,
	struct gsi **out);
/* gsi NULL: does nothing. There is no user (asserted). */
void gsi_destroy(struct gsi *gsi);
/* Removes the user, and drops its messages. With all engine locks held. */
void gsi_user_clear(struct gsi *gsi);

#endif
