/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* QP 1 (wire/wire_gsi.h) is not in the QP table. Its packets go to a user, and those of one
 * class to the agent for extensions (port/ext_query.h). Engine 0 sends the messages of
 * both. */
#ifndef ROCADE_ENGINE_GSI_H
#define ROCADE_ENGINE_GSI_H

#include "engine/dev.h"
#include "engine/gsi.h"

/* Sets a user of QP 1. A message that neither of two users claims is for the first one, which
 * answers that there is no such service. -EBUSY: there is a user with this id; -EOPNOTSUPP: the
 * daemon owns the port's QP 1. */
int dev_gsi_set(struct dev *dev, enum gsi_user_id id, const struct gsi_user *user);
/* When it returns, no engine calls the user any more. */
void dev_gsi_clear(struct dev *dev, enum gsi_user_id id);
/* To be called after a user has changed the time when it has something to send. */
void dev_gsi_due(struct dev *dev);

#endif
