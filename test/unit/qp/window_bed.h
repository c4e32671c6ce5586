/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair, and over the memory of its second host a region with a window. */
#ifndef ROCADE_TEST_QP_WINDOW_BED_H
#define ROCADE_TEST_QP_WINDOW_BED_H

#include "qp_pair.h"

#define WIN_OFFSET 0x8000 /* of what the window shows in b's memory */
#define WIN_LEN 3000
#define WIN_RIGHTS (ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define SIGNALED IBV_SEND_SIGNALED

extern struct pair p;
extern struct window *window; /* of b, type 2, unless the test made another */
extern uint32_t region;       /* of b */

void
win_init(void);
void
win_fini(void);
/* b binds, and that is done at once. */
uint32_t
win_bound(void);
struct cqe
win_taken(struct host *h, struct cq *cq);
void
win_post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t offset,
	uint32_t remote, uint32_t len);
/* a's request through rkey ends like this; what it ends badly with ends both QPs. */
void
win_through(uint32_t rkey, enum ibv_wr_opcode opcode, uint32_t remote, uint32_t len,
	enum ibv_wc_status status);

#endif
