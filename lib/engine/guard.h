/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory that the application takes away. A kernel pins the pages of a region;
 * we cannot, so what a peer writes there after munmap() would take the process down.
 * While a device is open a handler of SIGSEGV and SIGBUS puts a page of zeros under the
 * copy and marks every region with that address dead: the copy ends, and the regions are
 * refused from then on. It acts only on a thread that runs an engine, on an address
 * inside a region that nothing is mapped at; everything else goes to the handler there
 * was before. An application that installs its own one later should call the one it
 * finds. ROCADE_GUARD=0 in the environment leaves the signals alone.
 */
#ifndef ROCADE_ENGINE_GUARD_H
#define ROCADE_ENGINE_GUARD_H

#include "mem/key.h"

/* The keys of the engine that this thread runs. Of the initial-exec model: a signal
 * handler must not be what allocates it. */
extern __thread struct key_table *guard_keys __attribute__((tls_model("initial-exec")));

/* A device more is open, one less. */
void
guard_up(void);
void
guard_down(void);

/* Around what an engine does, under its gate. */
static inline void
guard_enter(struct key_table *keys)
{
	guard_keys = keys;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void
guard_leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	guard_keys = NULL;
}

#endif
