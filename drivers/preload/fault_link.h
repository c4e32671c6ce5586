/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of rocade-run --faults that take the link of the process's devices down and up: by its requests, and by times, for
 * which a thread waits. */
#ifndef ROCADE_PRELOAD_FAULT_LINK_H
#define ROCADE_PRELOAD_FAULT_LINK_H

#include <infiniband/verbs.h>

#include "faults/faults.h"

/* The device of a new context. Times count from the first one on. */
void fault_link_begin(struct ibv_context *context);
/* A request has hit such a rule: applies it, with the line of the journal, if it changes anything. Returns whether it does. */
bool fault_link_change(const struct fault_hit *hit);

#endif
