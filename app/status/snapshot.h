/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a daemon at a time. */
#ifndef STATUS_SNAPSHOT_H
#define STATUS_SNAPSHOT_H

#include <jansson.h>

/*
 * Asks the daemon, and puts what each client says of itself into what the daemon says of
 * it:
 * {"socket", "device", "clients": [...], "gone"}. NULL: rocade_error() says why.
 */
json_t *
snapshot_take(const char *socket);

/*
 * Adds to each client that was there before "rates": what its counters
 * of packets, bytes and losses rose by in a second.
 */
void
snapshot_rates(json_t *now, const json_t *before, double seconds);

/* A number of an object, 0 when it has none by that name. */
double
number_of(const json_t *object, const char *name);

#endif
