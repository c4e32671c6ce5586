/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: a few of each end, over a part of its host's memory, through which its
 * peer's requests go instead of the region's key. A window is used only when its bind is
 * known to be done, and given back only when what uses it is; so what may happen is
 * exact, and whoever names a key that is gone must fail.
 */
#ifndef ROCADE_SIM_WIN_H
#define ROCADE_SIM_WIN_H

#include <infiniband/verbs.h>

#include "sim.h"

#define END_WINS 3
#define END_TYPE1 (END_WINS - 1) /* the place of the one of type 1 */

struct end;
struct msg;

enum win_state {
	WIN_FREE,    /* not bound, for sure */
	WIN_BINDING, /* asked for */
	WIN_BOUND,
	WIN_LEAVING, /* its owner has asked for that */
	WIN_TAKEN,   /* its owner's peer has */
	WIN_UNSURE,  /* type 1: a bind of it was flushed */
};

struct win {
	struct ibv_mw *mw; /* NULL: none */
	uint8_t state;
	bool zero;     /* bytes are counted from its start */
	uint32_t rkey; /* now, or the last */
	uint32_t dead; /* one that it had; 0: none */
	uint32_t old;  /* dead when the bind is done */
	uint64_t at;
	uint32_t len;
	int access;
	uint32_t users; /* requests that name it and are not history */
};

void
win_open(struct end *e);
void
win_close(struct end *e);
/* The QP is in RESET: nothing that it bound is left. */
void
win_reset(struct end *e);

/* Posts a bind of type 1. False: it could not be. */
bool
win_bind(struct end *e);
/* Finds what a request invalidates or binds, or makes it another one. */
void
win_choose(struct end *e, struct msg *m, bool poison);
/* The request's own fields. */
void
win_fill(struct end *e, const struct msg *m, struct ibv_send_wr *wr);
/* Lets a request to remote memory go through a window, now and then. poison: one that
 * does not let it. */
void
win_use(struct end *e, struct msg *m, struct ibv_send_wr *wr, bool poison);
void
win_posted(struct msg *m);
/* A bind or local invalidation has completed. */
void
win_done(struct msg *m, bool ok);
/* What a SEND invalidated is so. */
void
win_taken(struct msg *m);
/* The message is history. */
void
win_release(struct msg *m);

#endif
