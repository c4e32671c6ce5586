/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP 1 (wire/gsi.h) is no QP of the table: what arrives for it goes to its user, what its
 * user has to say the port's first engine sends.
 */
#ifndef ROCADE_ENGINE_GSI_H
#define ROCADE_ENGINE_GSI_H

#include "engine/dev.h"
#include "wire/gsi.h"

struct gsi_msg {
	uint8_t sgid[16]; /* ours, whichever way it goes */
	uint8_t dgid[16];
	uint8_t bytes[GSI_LEN];
};

struct gsi_user {
	/* Any engine's thread, its gate held. The message was for an address of the port,
	 * with the Q_Key and a P_Key that match, and of this length. */
	void (*rx)(void *arg, const struct gsi_msg *msg, uint64_t now);
	/* What is to be sent next, from *due on; false: nothing now. */
	bool (*tx)(void *arg, struct gsi_msg *msg, uint64_t now);
	void *arg;
	/* Written by the user (relaxed: late by a turn is early enough); TIME_NEVER. */
	const uint64_t *due;
};

/* -EBUSY: there is one; -EOPNOTSUPP: the port's QP 1 is the daemon's; -ENOMEM. */
int
dev_gsi_set(struct dev *dev, const struct gsi_user *user);
/* When it returns no engine calls the user any more. */
void
dev_gsi_clear(struct dev *dev);

#endif
