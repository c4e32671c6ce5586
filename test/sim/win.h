/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: a few per end, over a part of its host's memory. Requests of the peer
 * may use a window instead of the region's key. A window is used only once its bind has
 * completed, and is invalidated only once the requests that use it have completed. The
 * outcome is therefore known, and a request with an invalidated key must fail.
 */
#ifndef ROCADE_SIM_WIN_H
#define ROCADE_SIM_WIN_H

#include <infiniband/verbs.h>

#include "sim.h"

#define END_WINS 3
#define END_TYPE1 (END_WINS - 1) /* index of the window of type 1 */

struct end;
struct msg;

enum win_state {
	WIN_FREE,    /* not bound */
	WIN_BINDING, /* the bind is posted */
	WIN_BOUND,
	WIN_LOCAL_INV,  /* its owner has posted LOCAL_INV */
	WIN_REMOTE_INV, /* the peer has posted SEND_WITH_INV */
	WIN_UNSURE,     /* type 1: its bind was flushed */
};

struct win {
	struct ibv_mw *mw; /* NULL: not allocated */
	uint8_t state;
	bool zero;              /* zero based */
	uint32_t rkey;          /* the current or last key */
	uint32_t old_rkey;      /* an earlier, invalid key; 0: none */
	uint32_t replaced_rkey; /* the key that the pending bind invalidates */
	uint64_t at;
	uint32_t len;
	int access;
	uint32_t users; /* requests that use it and are not freed */
};

void win_open(struct end *e);
void win_close(struct end *e);
/* The QP is in RESET: its windows are unbound. */
void win_reset(struct end *e);

/* Posts a bind of a type 1 window. Returns false if that is not possible. */
bool win_bind(struct end *e);
/* Chooses the window that a request binds or invalidates, or changes the operation. */
void win_choose(struct end *e, struct msg *m, bool failing);
/* Fills the request's window fields. */
void win_fill(struct end *e, const struct msg *m, struct ibv_send_wr *wr);
/* Sends a request to remote memory through a window, now and then. failing: through one
 * that refuses it. */
void win_use(struct end *e, struct msg *m, struct ibv_send_wr *wr, bool failing);
void win_posted(struct msg *m);
/* A bind or LOCAL_INV has completed. */
void win_done(struct msg *m, bool ok);
/* The SEND_WITH_INV has arrived and has invalidated the window. */
void win_remote_inv_done(struct msg *m);
/* The message is freed. */
void win_release(struct msg *m);

#endif
