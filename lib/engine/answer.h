/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ball games. An application that polls its engine itself often has posted the answer to a
 * message before the next turn. When it has done that for a while, all that can get out of the
 * way of the answer does, here and at the peer:
 *
 * - The turn: the answer leaves from within its post, by a draft made behind the answer before it
 *   (qp_draft()), and what it is counted in waits for the next turn.
 * - Looking at every field: the next ball most likely is as the last (wire/expect.h), and the receive
 *   that it will take is known (qp_catch()).
 * - The acknowledgement: it waits for the answer, and behind that for the next balls, as long as
 *   they come one upon the other. So several are acknowledged at once.
 * - Timers, bells, and what else a turn does while nothing is heard of.
 *
 * Each has the general way beside it, which is gone whenever something is not as expected. One
 * message without an answer ends the game. There is none where somebody drives the engine, nor
 * where more than one QP has something to say.
 */
#ifndef ROCADE_ENGINE_ANSWER_H
#define ROCADE_ENGINE_ANSWER_H

#include "engine/engine_internal.h"

#define ANSWER_ROW 16 /* messages answered before the next turn: it is a game */

/* An acknowledgement is for so many balls at the most, and waits for the next one so long. Where
 * none came, so many are acknowledged at once, behind their answers: perhaps the peer waits for
 * that. */
#define ANSWER_KEPT 8
#define ANSWER_PAUSE_NS (4 * NS_PER_US)
#define ANSWER_VAIN 1024

/* Whether a ball is all that is waited for; late: as answer_look() said. */
static inline bool
answer_game(const struct engine *e, bool late)
{
	return unlikely(e->answers.row == ANSWER_ROW) &&
	       !doorbells_pending(&e->doorbells) &&
	       (TAILQ_EMPTY(&e->ready) || (e->answers.kept && !late));
}

/* What answer_wait() asks where no ball was caught by answer_rx() in this turn. */
bool answer_kept(struct engine *e, bool moved, uint64_t now);

/* A turn has looked at the port; moved: and found something. Whether the rest of it waits for
 * the answer, or for the next ball. */
static inline bool
answer_wait(struct engine *e, bool moved, uint64_t now)
{
	return e->answers.held || answer_kept(e, moved, now);
}

/* A single frame has come, and a certain one is expected (answers.expect.len != 0). If this is
 * it, it has been taken in. */
bool answer_rx(struct engine *e, const struct pkt *pkt, uint64_t now);

/* In the turn behind the one that took a ball in: was it answered? */
void answer_learn(struct engine *e);

/* Whether the acknowledgement that is kept waits no longer. */
bool answer_late(struct engine *e, uint64_t now);

/* At the beginning of a turn: whether an acknowledgement has to leave with it. */
static inline bool
answer_look(struct engine *e, uint64_t now)
{
	if (unlikely(e->answers.waited))
		answer_learn(e);
	return unlikely(e->answers.kept) && answer_late(e, now);
}

/* Whether all that is to be sent is an acknowledgement that waits for the next ball. */
static inline bool
answer_rests(const struct engine *e)
{
	const struct answers *answers = &e->answers;

	return answers->kept && !answers->waited && answers->row == ANSWER_ROW &&
	       answers->vain == 0 && answers->coalesced < ANSWER_KEPT;
}

/* In the turn behind an answer (answers.prepare): it is counted, and the next round is prepared:
 * what will come, and a draft of its answer. */
void answer_prepare(struct engine *e, uint64_t now);

/* The engine is held by a control call: what waits leaves, for its QP may go, and no draft stays.
 * Nothing else happens. */
void answer_flush(struct engine *e);

/* Whether the caller is the thread that polls the engine, and its answer is awaited. */
static inline bool
answer_is_ours(const struct engine *e)
{
	return unlikely(__atomic_load_n(&e->answers.held, __ATOMIC_RELAXED)) &&
	       __atomic_load_n(&e->answers.loop, __ATOMIC_RELAXED) == pthread_self();
}

/* A post of that thread to this QP: sends what it can. False: the engine has to be told
 * of the post. */
bool answer_post(struct engine *e, struct qp *qp);

#endif
