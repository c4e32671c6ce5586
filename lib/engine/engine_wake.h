/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Wakes an engine that sleeps (engine_sleep.h). For the files of lib/engine. */
#ifndef ROCADE_ENGINE_ENGINE_WAKE_H
#define ROCADE_ENGINE_ENGINE_WAKE_H

#include "engine/engine_state.h"

void engine_wake_asleep(struct engine *e);

/* To be called after work for the engine was made visible, by any thread. */
static inline void
engine_wake_if_asleep(struct engine *e)
{
	/* The compiler must not move the load ahead of the work. For the CPU the membarrier() in
	 * engine_sleep_begin() sees to that, with which this pairs. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&e->doorbells.asleep, __ATOMIC_RELAXED) != 0))
		engine_wake_asleep(e);
}

/* Closes the descriptors of the engine. */
void engine_wake_close(struct engine *e);

#endif
