/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#ifndef ROCADE_BASE_SHORT_SLICE_H
#define ROCADE_BASE_SHORT_SLICE_H

/*
 * Asks the scheduler to run the calling thread soon after it wakes, and briefly: its time slice becomes the
 * shortest that Linux takes. From Linux 6.12 on a thread that wakes replaces one with a longer slice; before,
 * the kernel ignores this. The thread gets no larger part of the core, and keeps its policy and nice value.
 * A thread with another policy than SCHED_OTHER or SCHED_BATCH is left alone.
 */
void short_slice_ask(void);

#endif
