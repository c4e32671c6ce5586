/* SPDX-License-Identifier: BSD-3-Clause */
/* Unread events of channels. Internal to lib/ucm. Every file of lib/ucm may call this
 * one, which calls none of them. */
#ifndef ROCADE_UCM_QUEUE_H
#define ROCADE_UCM_QUEUE_H

#include "ucm/ucm_state.h"

/* A session may have this many unread events for each ID of its limit, in all. */
#define UCM_EVENTS_PER_ID 8
#define UCM_HELD_BATCH 256 /* events whose wait ends by its time, in one call */

/* Creates an event, not yet queued, with the number and uid of the ID. Returns NULL
 * without memory, or if the session or its user has too many unread events. */
struct ucm_event *ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status);
/* The event, which is to be put next, waits until the taker has taken what it is asked for by now. */
void ucm_event_hold(struct ucm_event *event, struct ucm_taker *taker, uint64_t now);
/* Appends it to the queue of the ID's channel. */
void ucm_event_put(struct ucm_event *event);
/* Appends an event that the program has written, with its argument. Returns 0, -ENOMEM, or -EINVAL: the
 * program has not accepted the request of the ID. */
int ucm_event_write(
	struct ucm_id *id, enum ucm_event_type type, uint32_t status, uint64_t arg);
/* Makes some events readable that need not wait any more. */
void ucm_events_run(struct ucm *ucm, uint64_t now);
/* Returns when ucm_events_run() has to be called next, or TIME_NEVER. */
uint64_t ucm_events_deadline(const struct ucm *ucm);
/* The channel, which has no event, is about to be freed. */
void ucm_events_end(struct ucm_channel *channel);
/* Removes it from the queue and frees it, but not the new ID that it announces. */
void ucm_event_drop(struct ucm_event *event);
/* Moves the ID to another channel: with its unread events, and the new IDs that they
 * announce. */
void ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to);

#endif
