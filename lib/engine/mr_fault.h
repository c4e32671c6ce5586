/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * The MR fault handler: registered memory that the application unmaps or protects. A
 * kernel pins the pages of a region; user space cannot, so a peer's write after munmap()
 * would crash the process. While a device is open whose creator has asked for it
 * (mr_fault_handler of struct rocade_port_conf), or that of the daemon, a handler of
 * SIGSEGV and SIGBUS maps a page of zeros at the address, and invalidates every region
 * that contains it: the copy ends, and the regions are refused from then on. Where a page
 * is mapped without the right to the access, a copy of it takes its place until the pass
 * ends, so that the application's page is not changed. The handler acts only on a thread
 * that runs an engine, and on an address inside a region. Other signals go to the handler
 * installed before. On-demand regions (mem/on_demand.h) rely on the handler for every page
 * that is missing, and are never invalidated. An application that installs a handler later
 * should call the one it replaces. ROCADE_OFF=mr-fault-handler in the environment leaves the
 * signals alone.
 */
#ifndef ROCADE_ENGINE_MR_FAULT_H
#define ROCADE_ENGINE_MR_FAULT_H

#include "mem/key.h"

/* The keys of the engine that this thread runs, or NULL. In the initial-exec TLS model,
 * because its first access may be in the signal handler, which must not allocate. */
extern __thread struct key_table *mr_fault_keys
	__attribute__((tls_model("initial-exec")));
/* Whether copies replace pages during this pass. */
extern __thread bool mr_fault_aside __attribute__((tls_model("initial-exec")));

/* Count the open contexts of such devices: the first installs the handlers, the last
 * restores the old ones. */
void mr_fault_get(void);
void mr_fault_put(void);
/* Returns whether they are installed: on-demand regions need them. */
bool mr_fault_installed(void);

/* Puts the pages of this thread back. */
void mr_fault_restore(void);

/* Enclose each pass of an engine. With the engine lock held. */
static inline void
mr_fault_enter(struct key_table *keys)
{
	mr_fault_keys = keys;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void
mr_fault_leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mr_fault_keys = NULL;
	if (unlikely(mr_fault_aside))
		mr_fault_restore();
}

#endif
