/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of messages to send. */
#include "cm/cm_tx.h"

/* If the queue is full, the message is dropped as if lost on the wire: a retry replaces
 * it. */
void
cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad)
{
	if (cm->out_tail - cm->out_head == CM_TX_QUEUE_LEN) {
		cm->stats.tx_full++;
		return;
	}
	cm->out[cm->out_tail++ % CM_TX_QUEUE_LEN] =
		(struct cm_out){.mad = *mad, .path = *path};
}

bool
cm_has_tx(const struct cm *cm)
{
	return cm->out_head != cm->out_tail;
}

bool
cm_tx(struct cm *cm, struct mad *mad, struct cm_path *path)
{
	const struct cm_out *out = &cm->out[cm->out_head % CM_TX_QUEUE_LEN];

	if (cm->out_head == cm->out_tail)
		return false;
	*mad = out->mad;
	*path = out->path;
	cm->out_head++;
	cm->stats.tx++;
	return true;
}
