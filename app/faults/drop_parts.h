/* SPDX-License-Identifier: BSD-3-Clause */
/* Delta debugging: which parts of something does a failure need? */
#ifndef FAULTS_DROP_PARTS_H
#define FAULTS_DROP_PARTS_H

#include <stdbool.h>

/* kept: for each of count parts whether it is there; all are at first, and it fails. Clears those that are not needed:
 * at the end none of those that are left can be left out alone. fails: whether it does with those that are kept; it is
 * never asked without any. spare: room for as many. Returns how many are kept. */
unsigned parts_drop(bool *kept, bool *spare, unsigned count,
	bool (*fails)(const bool *kept, void *arg), void *arg);

#endif
