/* SPDX-License-Identifier: BSD-3-Clause */
/* What other threads have handed over. Called by sw.c. */
#ifndef ROCADE_SWITCH_SW_TAKE_H
#define ROCADE_SWITCH_SW_TAKE_H

#include "switch/sw.h"

#define SW_TAKE_BURST 64 /* from each other thread, in a pass */

/* Takes over what other threads have handed over to this one. Returns how many packets. */
unsigned sw_take(struct sw_thread *t, uint64_t now);
/* Returns whether there is more. */
bool sw_take_pending(const struct sw_thread *t);

#endif
