/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: posting them, checking their effects on completion, freeing them. */
#ifndef ROCADE_SIM_MSG_H
#define ROCADE_SIM_MSG_H

#include "end.h"

#define POST_LIST 4

/* Posts up to `count` requests in one list. Returns false if none could be posted. */
bool end_post(struct end *e, unsigned count, bool failing);

/* Marks the message complete. Checks its effects and gives back its local memory. */
void msg_done(struct end *e, struct msg *m, bool ok);

/* Returns the message that a receive completion of `e` belongs to, checked against it. */
struct msg *msg_received(struct end *e, const struct recv *r, const struct ibv_wc *wc);

#endif
