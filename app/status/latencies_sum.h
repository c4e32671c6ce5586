/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATUS_LATENCIES_SUM_H
#define STATUS_LATENCIES_SUM_H

#include <jansson.h>

/* Adds "all_latencies" to a snapshot: a row for each type of QP and operation, with the sum of all clients and of
 * the departed ones. It has as many rows for any number of clients.
 *
 * kept: an array with the last sums, at first empty, which this changes. No value is smaller than it was: a
 * client that ends while the snapshot is made is in no row of it. */
void latencies_sum(json_t *snapshot, json_t *kept);

#endif
