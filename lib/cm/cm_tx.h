/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of messages to send. Internal to lib/cm: any of its files may call it. */
#ifndef ROCADE_CM_CM_TX_H
#define ROCADE_CM_CM_TX_H

#include "cm/cm_types.h"

/* Queues a copy of the message for cm_tx(). */
void cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad);
/* The same for a message that another host can cause, again and again, with a false
 * source address. The number of such messages to an address is limited, so that they do
 * not flood a host that has asked for nothing. */
void cm_answer(
	struct cm *cm, const struct cm_path *path, const struct mad *mad, uint64_t now);

#endif
