/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/answer.h"
#include "engine/clock.h"
#include "engine/mr_fault.h"

static void
hold(struct engine *e, bool held)
{
	__atomic_store_n(&e->answers.held, held, __ATOMIC_RELAXED);
}

/* Nothing is expected of any QP any more, and no answer of one. */
static void
unprepare(struct answers *answers)
{
	assert(!answers->posted);
	answers->prepare = answers->drafted = answers->ready = answers->matched = false;
	answers->expect.len = 0;
	answers->qp = NULL;
}

/* The one QP that has something to send, and nothing else is to be done. */
static const struct qp *
only_ready(const struct engine *e)
{
	const struct qp *qp = TAILQ_FIRST(&e->ready);

	if (qp == NULL || TAILQ_NEXT(qp, sched.ready_link) != NULL ||
		doorbells_pending(&e->doorbells))
		return NULL;
	return qp;
}

/* A ball has come, for this QP: its answer is awaited, and its acknowledgement stays. */
static void
caught(struct engine *e, const struct qp *qp, uint64_t now)
{
	struct answers *answers = &e->answers;

	answers->coalesced = answers->kept ? (uint8_t)(answers->coalesced + 1) : 1;
	answers->last_ns = now;
	answers->messages = qp->stats.rx_msgs;
	answers->waited = answers->kept = true;
	answers->vain -= answers->vain != 0;
	hold(e, true);
}

bool
answer_kept(struct engine *e, bool moved, uint64_t now)
{
	struct answers *answers = &e->answers;
	const struct qp *qp = only_ready(e);

	if (qp == NULL || e->progress_thread != NULL || !qp_wants_ack_only(qp))
		return false;
	if (answers->kept && qp->stats.rx_msgs == answers->messages)
		return true;
	if (!moved)
		return false;
	answers->waited = true;
	if (answers->row < ANSWER_ROW)
		return false;
	caught(e, qp, now);
	return true;
}

void
answer_learn(struct engine *e)
{
	struct answers *answers = &e->answers;
	/* In a game it is held until the answer leaves. */
	bool sent = answers->row == ANSWER_ROW && !answers->held;

	if (!sent && !doorbells_pending(&e->doorbells)) {
		answers->row = 0;
		unprepare(answers);
	} else if (answers->row < ANSWER_ROW) {
		answers->row++;
	}
	answers->waited = false;
	hold(e, false);
}

bool
answer_late(struct engine *e, uint64_t now)
{
	struct answers *answers = &e->answers;

	if (answers->row < ANSWER_ROW || answers->vain != 0)
		return true;
	if (now - answers->last_ns >= ANSWER_PAUSE_NS) {
		answers->vain = ANSWER_VAIN;
		return true;
	}
	return answers->coalesced >= ANSWER_KEPT;
}

/* What has left by a draft is waited for from now on. */
static void
settle(struct engine *e, uint64_t now)
{
	struct answers *answers = &e->answers;

	if (!answers->posted)
		return;
	answers->posted = false;
	qp_draft_sent(answers->qp, &answers->draft, now);
	engine_schedule(e, answers->qp);
}

static bool
catch_ready(struct answers *answers)
{
	return qp_catch(answers->qp, &answers->next_rx, answers->expect.view.payload_len);
}

/* One like the last, that is either what was expected or was taken in alone. */
static void
expect_next(struct engine *e)
{
	struct answers *answers = &e->answers;
	const struct qp *qp = answers->qp;
	struct pkt_view view;

	if (answers->matched) {
		answers->matched = false;
		expect_psn(&answers->expect, qp->resp.epsn);
	} else {
		answers->expect.len = 0;
		if (e->unreleased_count == 1 &&
			pkt_parse_headers(&e->unreleased[0], e->vlan, &view) ==
				DROP_none &&
			qp_expects(qp, &view))
			expect_like(&answers->expect, &e->unreleased[0], &view,
				qp->resp.epsn);
	}
	answers->ready = answers->expect.len != 0 && catch_ready(answers);
}

bool
answer_rx(struct engine *e, const struct pkt *pkt, uint64_t now)
{
	struct answers *answers = &e->answers;
	const struct expect *expect = &answers->expect;
	struct qp *qp = answers->qp;
	const uint8_t *payload;

	/* It was not if there was no receive then. */
	if (unlikely(!answers->ready) && !catch_ready(answers))
		return false;
	payload = expect_match(expect, pkt);
	if (unlikely(payload == NULL) ||
		!qp_catch_take(qp, &answers->next_rx, expect->view.psn, payload))
		return false;
	engine_ready(e, qp);
	answers->ready = false;
	answers->matched = true;
	/* It had no request to send before, and has none now. */
	if (likely(only_ready(e) == qp))
		caught(e, qp, now);
	return true;
}

void
answer_prepare(struct engine *e, uint64_t now)
{
	struct answers *answers = &e->answers;

	settle(e, now);
	expect_next(e);
	answers->prepare = false;
	answers->drafted = (answers->draft.pkt.data != NULL ||
				   engine_frame_get(e, &answers->draft.pkt)) &&
			   qp_draft(answers->qp, &answers->draft, answers->draft.len);
}

void
answer_flush(struct engine *e)
{
	struct qp *qp = TAILQ_FIRST(&e->ready);

	settle(e, e->shared.now);
	unprepare(&e->answers);
	if (e->answers.kept && qp != NULL)
		engine_acknowledge(e, qp, e->shared.now);
	e->answers.kept = false;
}

/* By the draft, if there is one and the request is as expected. It names the next hop as the
 * QP's last answer did. */
static bool
draft_post(struct engine *e, struct qp *qp)
{
	struct answers *answers = &e->answers;

	if (!answers->drafted || answers->qp != qp)
		return false;
	answers->drafted = false;
	if (e->backlog_count != 0 || qp->sched.on_blocked ||
		qp->sched.net_generation != e->net_generation ||
		!qp_draft_fill(qp, &answers->draft))
		return false;
	answers->posted = true;
	engine_send_own(e, &answers->draft.pkt, e->shared.now);
	answers->draft.pkt.data = NULL;
	return true;
}

/* By way of all requests. */
static bool
post(struct engine *e, struct qp *qp)
{
	struct answers *answers = &e->answers;

	e->shared.now = clock_now();
	if (!engine_answer(e, qp, e->shared.now))
		return false;
	/* What is expected is expected of a QP. */
	if (answers->qp != qp)
		unprepare(answers);
	answers->qp = qp;
	answers->draft.len = frame_plain_len(&qp->hdr);
	return true;
}

bool
answer_post(struct engine *e, struct qp *qp)
{
	bool sent = false;

	if (!rte_ticketlock_trylock(&e->lock))
		return false;
	if (e->answers.held) {
		mr_fault_enter(&e->dev->keys);
		sent = draft_post(e, qp) || post(e, qp);
		mr_fault_leave();
		hold(e, !sent);
		e->answers.prepare |= sent;
	}
	rte_ticketlock_unlock(&e->lock);
	return sent;
}
