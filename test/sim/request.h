/* SPDX-License-Identifier: BSD-3-Clause */
/* Building a request, and making it one that fails. */
#ifndef ROCADE_SIM_REQUEST_H
#define ROCADE_SIM_REQUEST_H

#include "msg.h"

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[SGL_PIECES + 20];
	uint8_t inlined[SEND_MAX_INLINE];
	struct ibv_ah *ah; /* destroyed after the post, which copies it */
	bool invalid;
};

/* The request was accepted. Updates the model. */
void msg_posted(struct end *e, struct msg *m);
void bad_request_note(struct end *e, struct msg *m);
/* Returns the access rights to remote memory that the operation needs. */
int rights_needed(const struct msg *m);
/* Replaces an operation that the connection does not allow, unless it is to fail. */
void rights_check(struct end *e, struct msg *m, bool failing);
/* Changes the request so that it must fail. Leaves it unchanged where that is not
 * possible. */
void bad_request_make(struct end *e, struct msg *m, struct request *r);
/* Changes the request so that the post refuses it. */
void refused_request_make(struct end *e, struct msg *m, struct request *r);

#endif
