/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the connections to a state without requests in progress. */
#ifndef ROCADE_SIM_QUIESCE_H
#define ROCADE_SIM_QUIESCE_H

#include "end.h"

/* Returns whether all requests left are unsignaled. They may have been executed before
 * the QP failed, and no later completion says so. */
bool only_unsignaled_left(struct end *e);
/* Moves the QP from SQD back to RTS. Returns false while it drains. */
bool quiesce_sqd(struct end *e);
/* Moves the QP from SQE back to RTS. Only the send queue of an unreliable QP fails
 * alone. */
bool quiesce_sqe(struct end *e);
/* Polls, repairs and posts a last request on each connection. Returns true when nothing
 * is in progress. */
bool world_quiesce_step(void);
/* Checks what the engines know of their peers: packets in flight, blocked QPs. */
void quiesce_peers_check(void);

#endif
