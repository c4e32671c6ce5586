/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture: a pair of QPs, and a region with a memory window over the memory of b. */
#ifndef ROCADE_TEST_QP_WINDOW_FIXTURE_H
#define ROCADE_TEST_QP_WINDOW_FIXTURE_H

#include "qp_link.h"

#define WIN_OFFSET 0x8000 /* of the memory that the window covers, in b's memory */
#define WIN_LEN 3000
#define WIN_RIGHTS (ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define SIGNALED IBV_SEND_SIGNALED

extern struct qp_link p;
extern struct mw *mw;   /* of b, type 2, unless the test made another */
extern uint32_t region; /* of b */

void win_init(void);
void win_fini(void);
/* Binds b's window and polls the completion. */
uint32_t win_bind(void);
struct cqe win_poll(struct host *h, struct cq *cq);
void win_post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t offset,
	uint32_t remote, uint32_t len);
/* a accesses b's memory through rkey, and the request completes with this status. An
 * access error also raises an event on b. */
void win_access(uint32_t rkey, enum ibv_wr_opcode opcode, uint32_t remote, uint32_t len,
	enum ibv_wc_status status);

#endif
