/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection requests of IDs, sent at once or deferred. Internal to lib/ucm. May be
 * called by commands, by id.c, ucm.c and ucm_event.c. */
#ifndef ROCADE_UCM_UCM_REQUEST_H
#define ROCADE_UCM_UCM_REQUEST_H

#include "ucm/ucm_state.h"

/* how long a request to a port without a listener is deferred: if the port is bound,
 * and if it is not */
#define UCM_DEFER_NS (500 * NS_PER_MS)
#define UCM_DEFER_SHORT_NS (200 * NS_PER_MS)
/* deferred requests sent in one call: the caller's thread moves packets too */
#define UCM_DEFERRED_BATCH 4
/* and looked at, for a new listener of their port */
#define UCM_DEFERRED_LOOKS 16
/* No further one is looked at after visits to this many IDs that have the ports. */
#define UCM_DEFERRED_VISITS 512

void ucm_request_init(struct ucm *ucm);

/* Sends the connection request of the ID, from its stored parameters. Defers it if its
 * destination is local and has no listener yet. Returns 0 or -errno; -EADDRNOTAVAIL if
 * the ID's address was removed. */
int ucm_request_send(struct ucm *ucm, struct ucm_id *id, uint64_t now);
/* Sends the request of an ID, which the peer has rejected, once more with a smaller path
 * MTU. Returns false if that fails: the connection of the ID is as before. */
bool ucm_request_again(
	struct ucm *ucm, struct ucm_id *id, uint8_t path_mtu, uint64_t now);
/* Cancels the request of the ID if it is deferred. */
void ucm_request_cancel(struct ucm *ucm, struct ucm_id *id);
/* Sends the deferred requests for the new listener: a batch at once, the others by
 * ucm_request_run(). */
void ucm_request_on_listen(struct ucm *ucm, const struct ucm_id *listener, uint64_t now);
/* Sends a batch of the deferred requests whose port has got a listener, or whose time is over. */
void ucm_request_run(struct ucm *ucm, uint64_t now);
/* Returns when ucm_request_run() has to be called next, or TIME_NEVER. */
uint64_t ucm_request_deadline(const struct ucm *ucm);

#endif
