/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/answer.h"
#include "engine/guard.h"

static void
hold(struct engine *e, bool held)
{
	__atomic_store_n(&e->answers.held, held, __ATOMIC_RELAXED);
}

bool
answer_awaited(struct engine *e)
{
	struct answers *answers = &e->answers;
	const struct qp *qp = TAILQ_FIRST(&e->ready);

	if (qp == NULL || TAILQ_NEXT(qp, ready_link) != NULL || e->driver != NULL ||
		!qp_wants_ack_only(qp))
		return false;
	answers->waited = true;
	if (answers->row < ANSWER_ROW)
		return false;
	hold(e, true);
	answers->kept = true;
	return true;
}

void
answer_learn(struct engine *e)
{
	struct answers *answers = &e->answers;
	/* In a game it is held until the answer leaves. */
	bool sent = answers->row == ANSWER_ROW && !answers->held;

	if (!sent && !bells_rung(&e->bells))
		answers->row = 0;
	else if (answers->row < ANSWER_ROW)
		answers->row++;
	answers->waited = answers->kept = false;
	hold(e, false);
}

void
answer_flush(struct engine *e)
{
	struct qp *qp = TAILQ_FIRST(&e->ready);

	e->answers.kept = false;
	if (qp != NULL)
		engine_acknowledge(e, qp, e->env.now);
}

void
answer_prepare(struct engine *e)
{
	struct path_hdr *hdr = &e->answers.qp->hdr;

	if (hdr->udp_len != e->answers.udp_len && hdr->udp_len != 0)
		path_hdr_set_len(hdr, e->answers.udp_len);
	e->answers.qp = NULL;
}

bool
answer_post(struct engine *e, struct qp *qp, uint64_t now)
{
	bool sent = false;

	if (!rte_ticketlock_trylock(&e->gate))
		return false;
	if (e->answers.held) {
		guard_enter(&e->dev->keys);
		e->env.now = now;
		sent = engine_answer(e, qp, now);
		guard_leave();
		hold(e, !sent);
		if (sent) {
			e->answers.qp = qp;
			e->answers.udp_len = qp->hdr.udp_len;
		}
	}
	rte_ticketlock_unlock(&e->gate);
	return sent;
}
