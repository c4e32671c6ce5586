/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of messages to send. Internal to lib/cm: any of its files may call it. */
#ifndef ROCADE_CM_CM_TX_H
#define ROCADE_CM_CM_TX_H

#include "cm/cm_types.h"

/* Queues a copy of the message for cm_tx(). */
void cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad);
/* The same for a message that another host can cause with a false source address, and
 * more than once. For each address their number is limited: the host at this address, if
 * it has asked for nothing, does not receive more than that. */
void cm_answer(
	struct cm *cm, const struct cm_path *path, const struct mad *mad, uint64_t now);

#endif
