/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucm/held.h"
#include "ucm/queue.h"

void
ucm_taker_init(struct ucm_taker *taker)
{
	TAILQ_INIT(&taker->ids);
	taker->asked = 0;
}

void
ucm_held_begin(struct ucm_id *id, struct ucm_taker *taker, uint64_t now)
{
	struct ucm *ucm = id->channel->session->ucm;

	if (id->held)
		return;
	id->held = true;
	id->taker = taker;
	id->taker_asked = taker->asked;
	id->held_until_ns = now + UCM_HELD_NS;
	TAILQ_INSERT_TAIL(&taker->ids, id, taker_link);
	TAILQ_INSERT_TAIL(&ucm->held, id, held_link);
}

/* The taker has taken all that the ID waits for, or is not waited for any longer. */
static void
id_ready(struct ucm *ucm, struct ucm_id *id)
{
	TAILQ_REMOVE(&id->taker->ids, id, taker_link);
	id->taker = NULL;
	TAILQ_REMOVE(&ucm->held, id, held_link);
	TAILQ_INSERT_TAIL(&ucm->held_ready, id, held_link);
}

void
ucm_taken(struct ucm *ucm, struct ucm_taker *taker, uint32_t upto, uint64_t now)
{
	struct ucm_id *id;

	while ((id = TAILQ_FIRST(&taker->ids)) != NULL &&
		(int32_t)(id->taker_asked - upto) <= 0)
		id_ready(ucm, id);
	ucm_held_run(ucm, now);
}

void
ucm_held_forget(struct ucm_id *id)
{
	struct ucm *ucm = id->channel->session->ucm;

	if (!id->held)
		return;
	if (id->taker != NULL)
		id_ready(ucm, id);
	TAILQ_REMOVE(&ucm->held_ready, id, held_link);
	id->held = false;
}

/* At most UCM_HELD_IDS: each event may wake a program, and a command of a program must stay short. */
void
ucm_held_run(struct ucm *ucm, uint64_t now)
{
	struct ucm_id *id;

	while ((id = TAILQ_FIRST(&ucm->held)) != NULL && id->held_until_ns <= now)
		id_ready(ucm, id);
	for (unsigned i = 0;
		i < UCM_HELD_IDS && (id = TAILQ_FIRST(&ucm->held_ready)) != NULL; i++) {
		TAILQ_REMOVE(&ucm->held_ready, id, held_link);
		id->held = false;
		ucm_events_show(id);
	}
}

uint64_t
ucm_held_deadline(const struct ucm *ucm)
{
	const struct ucm_id *first = TAILQ_FIRST(&ucm->held);

	if (!TAILQ_EMPTY(&ucm->held_ready))
		return 0;
	return first != NULL ? first->held_until_ns : TIME_NEVER;
}
