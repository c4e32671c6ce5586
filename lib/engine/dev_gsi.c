/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on QP 1. */
#include <errno.h>

#include "engine/engine_gsi.h"
#include "engine/engine_sleep.h"

int
dev_gsi_set(struct dev *dev, const struct gsi_user *user)
{
	struct gsi *gsi = dev->gsi;
	int rc = 0;

	if (dev->conf.hooks != NULL)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&dev->lock);
	if (gsi->user.rx != NULL) {
		rc = -EBUSY;
	} else {
		dev_engines_lock(dev);
		gsi->user = *user;
		dev_engines_unlock(dev);
	}
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

void
dev_gsi_clear(struct dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	gsi_user_clear(dev->gsi);
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
}

void
dev_control_wake(struct dev *dev)
{
	engine_wake(dev->engines[0]);
}
