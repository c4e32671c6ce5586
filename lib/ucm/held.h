/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that wait until their program has taken the packets that came before them: those of an ID, from
 * DISCONNECTED on. Internal to lib/ucm. */
#ifndef ROCADE_UCM_HELD_H
#define ROCADE_UCM_HELD_H

#include "ucm/ucm_state.h"

/* The events of the ID wait from now on, until the taker has taken what it is asked for by now. An ID
 * waits once. */
void ucm_held_begin(struct ucm_id *id, struct ucm_taker *taker, uint64_t now);
/* The ID is about to be destroyed: its events do not become readable any more. */
void ucm_held_forget(struct ucm_id *id);
/* Makes the events of some IDs readable, whose time has come. */
void ucm_held_run(struct ucm *ucm, uint64_t now);
/* Returns when ucm_held_run() has to be called next, or TIME_NEVER. */
uint64_t ucm_held_deadline(const struct ucm *ucm);

#endif
