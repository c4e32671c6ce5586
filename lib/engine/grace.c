/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include "base/ticket_lock.h"
#include "engine/engine_lock.h"
#include "engine/grace.h"

/* Whether another thread polls the engine in a loop, so that it leaves it soon. */
static bool
has_other_owner(const struct engine *e)
{
	/* Pairs with the release in engine_lock_pass(). */
	uint32_t owner = __atomic_load_n(&e->owner, __ATOMIC_ACQUIRE);

	return owner != 0 && __atomic_load_n(&e->owner_thread[owner], __ATOMIC_RELAXED) !=
				     engine_thread();
}

static void
engine_grace_await(struct engine *e, uint32_t asked)
{
	for (unsigned spins = 0; has_other_owner(e) && spins < TICKET_LOCK_SPINS;
		spins++) {
		/* Pairs with the release in engine_grace_report(). */
		uint32_t passed = __atomic_load_n(&e->grace_passed, __ATOMIC_ACQUIRE);

		if ((int32_t)(passed - asked) >= 0)
			return;
		rte_pause();
	}
	engine_lock(e);
	engine_unlock(e);
}

void
dev_grace_wait(struct dev *dev)
{
	uint32_t asked[DEV_MAX_ENGINES];

	/* Pairs with the acquire in engine_grace_report(): a thread that reports this count, or a later
	 * one, has left the engine since what the caller has withdrawn cannot be found. */
	for (unsigned i = 0; i < dev->engine_count; i++)
		asked[i] = __atomic_add_fetch(
			&dev->engines[i]->grace_asked, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < dev->engine_count; i++)
		engine_grace_await(dev->engines[i], asked[i]);
}
