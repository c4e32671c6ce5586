/* SPDX-License-Identifier: BSD-3-Clause */
/* What keeps connections from coming to rest, put right. */
#ifndef ROCADE_SIM_HEAL_H
#define ROCADE_SIM_HEAL_H

#include "end.h"

/* What is left makes no completion of its own: it may have been done before the QP
 * failed, and nothing comes behind it to say so. */
bool
only_silent_left(struct end *e);
/* From SQD back to RTS; false: it drains still. */
bool
heal_drained(struct end *e);
/* The send queue of an unreliable QP has failed alone. */
bool
heal_sqe(struct end *e);
/* True: there was nothing to put right any more. */
bool
heal_world(void);

#endif
