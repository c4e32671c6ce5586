/* SPDX-License-Identifier: BSD-3-Clause */
/* IDs, and the tables that give them and the channels their numbers. Internal to lib/ucm.
 * May be called by commands, by ucm.c and by ucm_event.c, not by queue.c, ucm_addr.c and
 * ucm_request.c: ucm_id_destroy() calls those. */
#ifndef ROCADE_UCM_ID_H
#define ROCADE_UCM_ID_H

#include "ucm/ucm_call.h"

/* 0 is not a valid number. */
int ucm_table_init(struct ucm_table *t, uint32_t size);
void ucm_table_fini(struct ucm_table *t);
int ucm_table_add(struct ucm_table *t, void *what, uint32_t *number);
void *ucm_table_find(const struct ucm_table *t, uint32_t number);
void ucm_table_remove(struct ucm_table *t, uint32_t number);

int ucm_id_create(struct ucm_channel *channel, uint16_t ps, struct ucm_id **out);
/* Destroys the ID. Also leaves its groups, drops its unread events with the new IDs that
 * they announce, rejects requests to it that the program has not seen, and cancels its
 * own deferred request. */
void ucm_id_destroy(struct ucm_id *id, uint64_t now);
/* The same for the program. Of an ID with many groups or events a part is left to ucm_run(); its port is
 * free at once, and no request comes to it. */
void ucm_id_end(struct ucm_id *id, uint64_t now);
/* Releases the connection of the ID, if it has one, and gives it back to the account. */
void ucm_id_release_conn(struct ucm_id *id, uint64_t now);
/* Returns the ID with this number, or NULL: it must be in the channel of the call, known
 * to the program, and no group. */
struct ucm_id *ucm_id_find(const struct ucm_call *call, uint32_t number);
/* Returns the transport that QPs of its type use. */
enum cm_transport ucm_id_transport(const struct ucm_id *id);

#endif
