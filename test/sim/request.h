/* SPDX-License-Identifier: BSD-3-Clause */
/* A request while it is made, and what makes it one that fails. */
#ifndef ROCADE_SIM_REQUEST_H
#define ROCADE_SIM_REQUEST_H

#include "msg.h"

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[SGL_PIECES + 20];
	uint8_t inlined[SEND_MAX_INLINE];
	struct ibv_ah *ah; /* gone behind the post, which copies it */
	bool invalid;
};

/* Accepted: it counts from now on. */
void
msg_posted(struct end *e, struct msg *m);
void
poison_note(struct end *e, struct msg *m);
/* Of the memory it names. */
int
rights_needed(const struct msg *m);
/* What the connection does not grant is asked for only to see it fail. */
void
rights_check(struct end *e, struct msg *m, bool poison);
/* Makes it one that cannot succeed; where that is not possible it stays as it is. */
void
poison_make(struct end *e, struct msg *m, struct request *r);
/* What the post itself refuses. */
void
invalid_make(struct end *e, struct msg *m, struct request *r);

#endif
