/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* QP 1 (wire/wire_gsi.h) is not in the QP table. Its packets go to a user, and the
 * control engine sends the user's messages. */
#ifndef ROCADE_ENGINE_GSI_H
#define ROCADE_ENGINE_GSI_H

#include "engine/dev.h"
#include "wire/wire_gsi.h"

struct gsi_user {
	/* Called by any engine's thread with its lock held. The message is GSI_LEN bytes
	 * long and was sent to an address of the port, with the Q_Key of QP 1 and a P_Key
	 * that matches. */
	void (*rx)(void *arg, const struct gsi_msg *msg, uint64_t now);
	/* Called at or after the time *due: fills in the next message to be sent. False:
	 * there is none now. */
	bool (*tx)(void *arg, struct gsi_msg *msg, uint64_t now);
	void *arg;
	/* Written by the user, relaxed: an engine may see it a pass late. TIME_NEVER:
	 * nothing to send. */
	const uint64_t *due;
};

/* For dev_gsi.c, engine_gsi.c and engine_rx.c. */
#define GSI_UNRESOLVED 32 /* messages that wait for neighbour resolution */

struct gsi {
	struct gsi_user user;
	/* when unresolved messages are tried again; TIME_NEVER: there are none */
	uint64_t retry_ns;
	uint32_t psn;
	unsigned unresolved_count;
	struct gsi_msg unresolved[GSI_UNRESOLVED];
};

/* Sets the user of QP 1. -EBUSY: there is one; -EOPNOTSUPP: the daemon owns the port's QP
 * 1; -ENOMEM. */
int dev_gsi_set(struct dev *dev, const struct gsi_user *user);
/* When it returns, no engine calls the user any more. */
void dev_gsi_clear(struct dev *dev);

#endif
