/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Grace periods, as of RCU (rte_rcu_qsbr(3) is the same for threads that register). An entry
 * that engines look up without a lock is freed in three steps: the control call withdraws it, waits for
 * a grace period, and frees it. No engine is stopped meanwhile.
 *
 * A thread uses what it has looked up until it leaves the engine (engine_leave()). Then it reports how
 * many grace periods had been asked for. An engine without a thread that polls it reports nothing:
 * taking its lock once shows that no thread is inside.
 */
#ifndef ROCADE_ENGINE_GRACE_H
#define ROCADE_ENGINE_GRACE_H

#include "engine/dev.h"

/* Returns when each thread that was inside an engine of the device at the time of the call has left
 * it. The caller holds no engine lock. A thread that is inside itself, in a callback, does not count. */
void dev_grace_wait(struct dev *dev);

#endif
