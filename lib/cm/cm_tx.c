/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of messages to send. */
#include "cm/cm_tx.h"
#include "cm/table.h"

/* Limit of answers to each address: a burst, and one more after each interval. */
#define ANSWERS_BURST 1024
#define ANSWER_INTERVAL_NS (8 * NS_PER_MS)

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

void
cm_lose(struct cm_conn *conn, enum mad_attr attr)
{
	struct cm *cm = conn->cm;
	const struct mad *last = &cm->out[(cm->out_tail - 1) % CM_TX_QUEUE_LEN].mad;

	/* A full queue has dropped it. */
	if (!cm_has_tx(cm) || mad_attr_of(last) != attr ||
		mad_local_id(last) != conn->local_id)
		return;
	cm->out_tail--;
	cm->stats.faults++;
}

void
cm_count_fault(struct cm *cm)
{
	cm->stats.faults++;
}

/* answers_until_ns: when the answers so far would all have left, one each
 * ANSWER_INTERVAL_NS. */
static bool
answer_allowed(struct cm *cm, const struct cm_path *path, uint64_t now)
{
	uint64_t *until_ns = &cm->answers_until_ns[source_bucket(cm, path)];
	uint64_t from_ns = RTE_MAX(*until_ns, now);

	if (from_ns - now > (ANSWERS_BURST - 1) * ANSWER_INTERVAL_NS)
		return false;
	*until_ns = from_ns + ANSWER_INTERVAL_NS;
	return true;
}

void
cm_answer(struct cm *cm, const struct cm_path *path, const struct mad *mad, uint64_t now)
{
	if (path->local || answer_allowed(cm, path, now))
		cm_send(cm, path, mad);
	else
		cm->stats.answers_limited++;
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
