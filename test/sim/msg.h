/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: their making, what they must have done when they are complete, their end. */
#ifndef ROCADE_SIM_MSG_H
#define ROCADE_SIM_MSG_H

#include "end.h"

#define POST_LIST 4

/* Posts up to so many requests in one list. False: nothing could be. */
bool
end_post(struct end *e, unsigned count, bool poison);

/* The message is complete: what it did is looked at, its own memory is given back. */
void
msg_done(struct end *e, struct msg *m, bool ok);

/* A receive has completed at e. Returns the message, which is checked against it. */
struct msg *
msg_received(struct end *e, const struct recv *r, const struct ibv_wc *wc);

#endif
