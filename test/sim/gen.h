/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications: one random operation after the other. */
#ifndef ROCADE_SIM_GEN_H
#define ROCADE_SIM_GEN_H

#include "end.h"

#define GEN_OPS(X)                                                                       \
	X(send, 400, "post sends")                                                       \
	X(receive, 300, "post receives")                                                 \
	X(poll, 250, "poll a CQ")                                                        \
	X(arm, 60, "arm a CQ")                                                           \
	X(srq_limit, 20, "arm an SRQ's limit")                                           \
	X(srq_resize, 15, "resize an SRQ")                                               \
	X(region, 20, "register or deregister a region")                                 \
	X(cq_resize, 20, "resize a CQ")                                                  \
	X(adversary, 0, "adversary")                                                     \
	X(modify, 10, "modify a QP's attributes")                                        \
	X(query, 15, "query a QP")                                                       \
	X(bad_request, 0, "post a request that must fail")                               \
	X(revoke, 0, "deregister a region in use")                                       \
	X(bad_receive, 0, "invalidate a receive")                                        \
	X(drain, 0, "a QP to SQD, or back to RTS")                                       \
	X(error, 0, "a QP to ERR")                                                       \
	X(reset, 0, "a connection to RESET")

enum gen_op {
#define GEN_ENUM(name, weight, text) GEN_##name,
	GEN_OPS(GEN_ENUM)
#undef GEN_ENUM
		GEN_COUNT
};

extern const char *const gen_texts[GEN_COUNT];

/* Does one operation. Returns false if it was not possible now: let time pass. */
bool gen_op(void);
/* Deregisters the regions that no request uses. */
void gen_end(void);

#endif
