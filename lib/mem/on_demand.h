/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * On-demand paging (ibv_reg_mr(3), IBV_ACCESS_ON_DEMAND): memory of the region may be missing
 * until it is accessed. Before each access the engine touches its pages, with an instruction
 * whose fault is expected: the MR fault handler (lib/engine/mr_fault.c) continues behind it. So a
 * page that is not mapped, or is mapped without the right to the access, is an error of the
 * request, and costs no system call where it is mapped.
 */
#ifndef ROCADE_MEM_ON_DEMAND_H
#define ROCADE_MEM_ON_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

/* The memory that this thread has touched last, and is going to access. The handler finds it
 * here when another thread unmaps the memory between. In the initial-exec TLS model, as
 * mr_fault_keys. */
struct on_demand_span {
	uintptr_t from, len;
};
extern __thread struct on_demand_span on_demand_touched
	__attribute__((tls_model("initial-exec")));

/* Faults in the memory of an access. Returns false if the access is not possible. write: adds
 * nothing to a byte of each page, atomically: the application may be writing there. The MR fault
 * handler must be installed. */
bool on_demand_touch(uintptr_t host, uint64_t len, bool write);

/* For the handler of SIGSEGV and SIGBUS: lets on_demand_touch() return false, if the fault was
 * there. context: a ucontext_t. Async-signal-safe. */
bool on_demand_recover(void *context);

/* Returns whether this thread has touched a byte, and nothing else since. */
static inline bool
on_demand_is_touched(uintptr_t byte)
{
	return byte - on_demand_touched.from < on_demand_touched.len;
}

#endif
