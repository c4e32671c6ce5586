/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ball games. An application that polls its engine itself often has posted the answer to
 * a message before the next turn. When it has done that for a while, two things get out
 * of the way of the answer, here and at the peer: the acknowledgement of the message,
 * which leaves a turn later than it could, and the turn, for the answer leaves from
 * within the post. One message without an answer ends the game.
 *
 * Not where somebody drives the engine, nor where more than one QP has something to say.
 */
#ifndef ROCADE_ENGINE_ANSWER_H
#define ROCADE_ENGINE_ANSWER_H

#include "engine/internal.h"

#define ANSWER_ROW 16 /* messages answered before the next turn: it is a game */

/* Whether a ball is all that is waited for. */
static inline bool
answer_game(const struct engine *e)
{
	return unlikely(e->answers.row == ANSWER_ROW) && TAILQ_EMPTY(&e->ready) &&
	       !bells_rung(&e->bells);
}

/* This turn took something in: whether an acknowledgement is all there is to send, and
 * stays. */
bool
answer_awaited(struct engine *e);

/* In the turn behind that one: was it answered? */
void
answer_learn(struct engine *e);

/* Whether this is that turn. It keeps nothing: an acknowledgement waits once. */
static inline bool
answer_look(struct engine *e)
{
	if (likely(!e->answers.waited))
		return false;
	answer_learn(e);
	return true;
}

/* Behind a turn that sent an acknowledgement, maybe: the header template is again for what was the
 * answer, and most likely will be. answers.qp is set. */
void
answer_prepare(struct engine *e);

/* The engine is held by a control call: what waits leaves, for its QP may go. Nothing
 * else happens. */
void
answer_flush(struct engine *e);

/* Whether the caller is the thread that polls the engine, and its answer is awaited. */
static inline bool
answer_is_ours(const struct engine *e)
{
	return unlikely(__atomic_load_n(&e->answers.held, __ATOMIC_RELAXED)) &&
	       __atomic_load_n(&e->answers.loop, __ATOMIC_RELAXED) == pthread_self();
}

/* A post of that thread to this QP: sends what it can. False: the engine has to be told
 * of the post. */
bool
answer_post(struct engine *e, struct qp *qp, uint64_t now);

#endif
