/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Rings on which an engine hands packets to the engines that own their QPs: one for each
 * ordered pair of engines. */
#ifndef ROCADE_ENGINE_HANDOFF_H
#define ROCADE_ENGINE_HANDOFF_H

#include "engine/engine_state.h"

#define HANDOFF_ENTRIES 1024 /* of a ring */

/* Create and destroy the rings on which the engine receives. Returns 0 or -ENOMEM. */
int handoff_create(struct engine *e);
void handoff_destroy(struct engine *e);

/* Hands the packet to the engine that owns its QP. True: the caller must not release
 * it. */
bool engine_hand_off(struct engine *e, struct engine *owner, struct pkt *pkt);

#endif
