/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to lib/ucm. The functions of ucm.h that may have caused messages or events
 * call this last: those of ucm.c and command.c. */
#ifndef ROCADE_UCM_UCM_EVENT_H
#define ROCADE_UCM_UCM_EVENT_H

#include "ucm/ucm_state.h"

/* Sends the messages that lib/cm has queued, and turns its events into events of IDs,
 * until there are no more. */
void ucm_pump(struct ucm *ucm, uint64_t now);

#endif
