/* SPDX-License-Identifier: BSD-3-Clause */
/* Unread events of channels. Internal to lib/ucm. Every file of lib/ucm may call this
 * one, which calls none of them. */
#ifndef ROCADE_UCM_QUEUE_H
#define ROCADE_UCM_QUEUE_H

#include "ucm/ucm_state.h"

/* A session may have this many unread events for each ID of its limit, in all. */
#define UCM_EVENTS_PER_ID 8

/* Creates an event, not yet queued, with the number and uid of the ID. Returns NULL
 * without memory, or if the session or its user has too many unread events. */
struct ucm_event *ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status);
/* Appends it to the queue of the ID's channel, or of the ID, if that is held. */
void ucm_event_put(struct ucm_event *event);
/* Moves the events that waited to the ID's channel. */
void ucm_events_show(struct ucm_id *id);
/* Removes it from the queue and frees it, but not the new ID that it announces. */
void ucm_event_drop(struct ucm_event *event);
/* Moves the ID to another channel: with its unread events, and the new IDs that they
 * announce. */
void ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to);

#endif
