/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on QP 1. */
#include <errno.h>

#include "engine/engine_gsi.h"

int
dev_gsi_set(struct dev *dev, const struct gsi_user *user)
{
	struct gsi *gsi;
	int rc = 0;

	if (dev->conf.hooks != NULL)
		return -EOPNOTSUPP;
	gsi = alloc_get(&alloc_plain, "gsi", sizeof(*gsi));
	if (gsi == NULL)
		return -ENOMEM;
	gsi->user = *user;
	gsi->retry_ns = TIME_NEVER;
	pthread_mutex_lock(&dev->lock);
	if (dev->gsi != NULL) {
		rc = -EBUSY;
	} else {
		dev_engines_lock(dev);
		dev->gsi = gsi;
		dev_engines_unlock(dev);
	}
	pthread_mutex_unlock(&dev->lock);
	if (rc != 0)
		alloc_put(&alloc_plain, gsi, sizeof(*gsi));
	return rc;
}

void
dev_gsi_clear(struct dev *dev)
{
	struct gsi *gsi;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	gsi = dev->gsi;
	dev->gsi = NULL;
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	alloc_put(&alloc_plain, gsi, sizeof(*gsi));
}
