/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending part of --mode send and --mode both. */
#ifndef TESTPMD_MODE_SEND_H
#define TESTPMD_MODE_SEND_H

#include "host.h"

#define DRAIN_NS (10 * NS_PER_SECOND)

void send_start(struct host *host);
/* Posts what there is room for. */
unsigned send_push(struct host *host);
/* Posts no new messages. The host then waits for what is outstanding. */
void send_stop(struct host *host);
/* A tick of the sending part: waits for the peer's first answer, ends after --duration, looks at
 * the link. Returns whether the run goes on. */
bool send_step(struct host *host, uint64_t now_ns);
/* Whether all is acknowledged and, where the ends tell each other more, found right. */
bool send_finished(struct host *host, uint64_t now_ns);
/* The last messages are not acknowledged in time. */
void send_drain_fail(struct host *host);

#endif
