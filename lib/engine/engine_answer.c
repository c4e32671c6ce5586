/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path, except where it says otherwise. */
/* Whether the answer to a QP's packets may still be on its way, where the peer is on this machine. */
#include <errno.h>
#include <stdlib.h>

#include "base/base_log.h"
#include "engine/dev_control.h"
#include "engine/engine_wake.h"
#include "engine/pass.h"

#define WAIT_ENV "ROCADE_PAIR_WAIT" /* seconds */
#define WAIT_MAX 3600

/* Rounds that an answer takes: the packets leave the ring of the peer's port, and then the answer that of
 * this port. With several engines each port may hand over what it receives. */
#define ROUNDS_OF_PORTS 2
#define ROUNDS_OF_PORTS_HANDED 4
/* Within a port: the packets leave the ring from engine to engine, and then the answer. */
#define ROUNDS_WITHIN 2

/* An engine that sleeps, and would complete no pass, is woken. */
static void
others_wake(const struct engine *e)
{
	for (unsigned i = 0; i < e->dev->engine_count; i++)
		if (e->dev->engines[i] != e)
			engine_wake_if_asleep(e->dev->engines[i]);
}

static bool
answer_waits(void *arg, const struct qp *qp, struct answer_wait *wait, uint64_t now)
{
	struct engine *e = arg;
	const struct port_queue *q = &e->io.queue;

	if (e->rounds_of_port || (qp->sched.resolved && qp->sched.route == ROUTE_SELF)) {
		if (!rounds_wait(e->rounds, wait, e->answer_rounds))
			return false;
		others_wake(e);
		return true;
	}
	/* With hooks the port has the packets of all peers, also of those on other hosts. */
	if (e->peers.lossless && (qp->peer == NULL || !qp->peer->lossless))
		return false;
	return q->ops->tx_waits != NULL && q->ops->tx_waits(q->queue, qp->qpn, wait, now);
}

void
engine_answers_init(struct engine *e)
{
	const struct port_queue *q = &e->io.queue;
	uint32_t index = e->index;

	e->rounds = e->dev->rounds;
	e->answer_rounds = ROUNDS_WITHIN;
	if (q->ops->rounds != NULL) {
		e->rounds = q->ops->rounds(q->queue, &index);
		e->rounds_of_port = true;
		e->answer_rounds = e->dev->port.queue_count == 1 ? ROUNDS_OF_PORTS
								 : ROUNDS_OF_PORTS_HANDED;
	}
	e->round = &e->rounds->engines[index];
	e->shared.answer_waits = answer_waits;
	e->shared.answer_arg = e;
	e->shared.answer_wait_ns = e->dev->answer_wait_ns;
	e->shared.answer_wait = e->dev->answer_wait;
	e->shared.answer_wait_mask = e->dev->qps.pool.mask;
}

/* ---- Control path ---- */

static uint64_t
wait_ns_read(void)
{
	const char *text = getenv(WAIT_ENV);
	unsigned long seconds = ANSWER_WAIT_NS / NS_PER_SEC;
	char *end;

	if (text != NULL && text[0] >= '0' && text[0] <= '9') {
		errno = 0;
		seconds = strtoul(text, &end, 10);
		if (*end != '\0' || errno != 0)
			seconds = WAIT_MAX + 1;
	} else if (text != NULL) {
		seconds = WAIT_MAX + 1;
	}
	if (seconds > WAIT_MAX) {
		log_err("%s: invalid value '%s': expected seconds, 0 to %d", WAIT_ENV,
			text, WAIT_MAX);
		return ANSWER_WAIT_NS;
	}
	return seconds * NS_PER_SEC;
}

static size_t
waits_size(const struct dev *dev)
{
	return ((size_t)dev->qps.pool.mask + 1) * sizeof(struct answer_wait);
}

int
dev_answers_create(struct dev *dev)
{
	uint32_t count = dev->port.queue_count;

	dev->answer_wait_ns = wait_ns_read();
	dev->rounds = alloc_get(&alloc_plain, "rounds", rounds_size(count));
	if (dev->rounds == NULL)
		return -ENOMEM;
	dev->rounds->count = count;
	/* Few QPs use theirs. */
	dev->answer_wait = alloc_get(&alloc_demand, "answers", waits_size(dev));
	return dev->answer_wait != NULL ? 0 : -ENOMEM;
}

void
dev_answers_destroy(struct dev *dev)
{
	alloc_put(&alloc_plain, dev->rounds, rounds_size(dev->port.queue_count));
	alloc_put(&alloc_demand, dev->answer_wait, waits_size(dev));
}
