/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* QP 1 (wire/wire_gsi.h) is not in the QP table. Its packets go to a user, and those of one
 * class to the agent for extensions (port/ext_query.h). Engine 0 sends the messages of
 * both. */
#ifndef ROCADE_ENGINE_GSI_H
#define ROCADE_ENGINE_GSI_H

#include "engine/dev.h"
#include "engine/gsi.h"

/* Sets the user of QP 1. -EBUSY: there is one; -EOPNOTSUPP: the daemon owns the port's QP
 * 1. */
int dev_gsi_set(struct dev *dev, const struct gsi_user *user);
/* When it returns, no engine calls the user any more. */
void dev_gsi_clear(struct dev *dev);

#endif
