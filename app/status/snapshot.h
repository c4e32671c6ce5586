/* SPDX-License-Identifier: BSD-3-Clause */
/* A snapshot of a daemon's state. */
#ifndef STATUS_SNAPSHOT_H
#define STATUS_SNAPSHOT_H

#include <jansson.h>

/* Asks the daemon for its state. Merges what each client reports into the daemon's entry
 * for that client.
 *
 * {"socket", "device", "clients": [...], "port" (if there is one), "rdma_cm", "departed",
 *  "departed_latencies", "all_latencies" (if latencies_sum() has added them)}
 *
 * Returns NULL on failure, with the reason in rocade_error() and errno. */
json_t *snapshot_fetch(const char *socket);

/* The same of a text of rocade_status_over(), which it frees. Returns NULL without memory. */
json_t *snapshot_read(char *text);

/* Adds "rates" to each client: per second packets and bytes, through the daemon and by pairs, and
 * packets lost to a full ring (rx_full). A client that is not in `before` has come since. */
void snapshot_rates(json_t *now, const json_t *before, double seconds);

/* Returns the member `name` of an object as a number, 0 if there is none. */
double number_of(const json_t *object, const char *name);

#endif
