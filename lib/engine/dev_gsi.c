/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on QP 1, and how two users share it. */
#include <errno.h>

#include "engine/engine_gsi.h"
#include "engine/engine_sleep.h"

/* ---- A user that stands for two: called with an engine lock held ---- */

static void
users_rx(void *arg, const struct gsi_msg *msg, uint64_t now)
{
	const struct gsi *gsi = arg;
	const struct gsi_user *user = &gsi->users[0];

	for (unsigned i = 0; i < GSI_USERS; i++) {
		if (!gsi->users[i].claims(gsi->users[i].arg, msg))
			continue;
		user = &gsi->users[i];
		break;
	}
	user->rx(user->arg, msg, now);
}

static bool
users_tx(void *arg, struct gsi_msg *msg, uint64_t now)
{
	const struct gsi *gsi = arg;

	for (unsigned i = 0; i < GSI_USERS; i++) {
		const struct gsi_user *user = &gsi->users[i];

		if (now >= __atomic_load_n(user->due, __ATOMIC_RELAXED) &&
			user->tx(user->arg, msg, now))
			return true;
	}
	return false;
}

/* ---- Control calls ---- */

/* Called with users_lock held. */
static void
users_due_update(struct gsi *gsi)
{
	uint64_t due = TIME_NEVER;

	for (unsigned i = 0; i < GSI_USERS; i++) {
		if (gsi->users[i].rx != NULL)
			due = RTE_MIN(due,
				__atomic_load_n(gsi->users[i].due, __ATOMIC_RELAXED));
	}
	__atomic_store_n(&gsi->users_due, due, __ATOMIC_RELAXED);
}

void
dev_gsi_due(struct dev *dev)
{
	pthread_mutex_lock(&dev->gsi->users_lock);
	users_due_update(dev->gsi);
	pthread_mutex_unlock(&dev->gsi->users_lock);
}

/* Replaces a user, and chooses what the engines call. user->rx NULL: there is none. */
static void
users_change(struct dev *dev, enum gsi_user_id id, const struct gsi_user *user)
{
	struct gsi *gsi = dev->gsi;
	const struct gsi_user *a = &gsi->users[0], *b = &gsi->users[1];

	static_assert(GSI_USERS == 2, "both are named here");
	dev_engines_lock(dev);
	pthread_mutex_lock(&gsi->users_lock);
	gsi->users[id] = *user;
	users_due_update(gsi);
	if (a->rx == NULL && b->rx == NULL)
		gsi_user_clear(gsi);
	else if (a->rx == NULL || b->rx == NULL)
		gsi->user = a->rx != NULL ? *a : *b;
	else
		gsi->user = (struct gsi_user){.rx = users_rx,
			.tx = users_tx,
			.arg = gsi,
			.due = &gsi->users_due};
	pthread_mutex_unlock(&gsi->users_lock);
	dev_engines_unlock(dev);
}

int
dev_gsi_set(struct dev *dev, enum gsi_user_id id, const struct gsi_user *user)
{
	int rc = 0;

	if (dev->conf.hooks != NULL)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&dev->lock);
	if (dev->gsi->users[id].rx != NULL)
		rc = -EBUSY;
	else
		users_change(dev, id, user);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

void
dev_gsi_clear(struct dev *dev, enum gsi_user_id id)
{
	pthread_mutex_lock(&dev->lock);
	users_change(dev, id, &(struct gsi_user){.rx = NULL});
	pthread_mutex_unlock(&dev->lock);
}

void
dev_control_wake(struct dev *dev)
{
	engine_wake(dev->engines[0]);
}
