/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Whether the answer to a QP's packets may still be on its way, where the peer is on this machine. */
#include "engine/engine_wake.h"
#include "engine/pass.h"

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
engine_answer_waits(
	void *arg, const struct qp *qp, struct answer_wait *wait, uint64_t now)
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

/* Returns whether a QP that the last pass had no more room for has responses to send: one of those that the
 * next pass serves, which are no more than the packets of a pass. */
static bool RARE
ready_qps_respond(const struct engine *e)
{
	const struct qp *qp = TAILQ_FIRST(&e->ready);

	for (unsigned i = 0; qp != NULL && i < ENGINE_TX_PASS; i++) {
		if (qp_has_response_pending(qp))
			return true;
		qp = TAILQ_NEXT(qp, sched.ready_link);
	}
	return false;
}

/* Returns whether the engine keeps answers to what it has received. */
static bool
keeps_answers(const struct engine *e)
{
	return e->io.backlog_count != 0 || e->delayed_ack.delayed ||
	       __atomic_load_n(&e->ack_coalesce.qp, __ATOMIC_RELAXED) != NULL ||
	       (unlikely(!TAILQ_EMPTY(&e->ready)) && ready_qps_respond(e));
}

void
engine_answers_tell(struct engine *e, uint64_t now)
{
	bool answered = !keeps_answers(e);

	if (e->unanswered && answered) {
		if (e->io.queue.ops->rx_answered != NULL)
			e->io.queue.ops->rx_answered(e->io.queue.queue);
		e->unanswered = false;
	}
	rounds_pass(e->rounds, e->round, answered && e->shared.polled_ns == now);
	e->round_done = e->round->done;
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
	e->round_number = &e->rounds->number;
	e->round_done = e->round->done;
	e->tells_answers = q->ops->rx_answered != NULL;
	e->shared.answer_waits = engine_answer_waits;
	e->shared.answer_arg = e;
	e->shared.answer_wait_ns = e->dev->answer_wait_ns;
	e->shared.answer_wait = e->dev->answer_wait;
	e->shared.answer_wait_mask = e->dev->qps.pool.mask;
}
