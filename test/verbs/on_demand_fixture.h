/* SPDX-License-Identifier: BSD-3-Clause */
/* An on-demand region of b, of which pages are missing, and requests that access it. */
#ifndef ROCADE_TEST_ON_DEMAND_FIXTURE_H
#define ROCADE_TEST_ON_DEMAND_FIXTURE_H

#include "verbs_pair.h"

#define PAGE 4096
#define PAGES 8
#define BYTES (PAGES * PAGE)
#define REMOTE                                                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL (IBV_ACCESS_LOCAL_WRITE | REMOTE)
#define QPS 12 /* each failure uses one up */

extern struct verbs_pair pair;
extern uint8_t *buffer; /* memory of b, of which some pages are missing */
extern struct ibv_mr *mr;
extern unsigned qp; /* the next one that is not used up */

/* Called inside a test: cmocka restores its signal handlers after each setup. */
void begin_with(bool handler);
/* Registers the buffer, on demand. */
void begin(int access);
void end(void);

bool is_mapped(const uint8_t *page);
bool is_present(const uint8_t *page);
void unmap(unsigned page);
void map_again(unsigned page);
/* The address of a byte of the buffer. */
uint64_t at(unsigned page, int offset);

/* Polls one completion. After one in error the QP is used up. */
void completes(struct verbs_side *s, struct ibv_cq *cq, enum ibv_wc_status status);
/* A request of a to b's memory. */
void remote(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey, uint32_t len,
	enum ibv_wc_status status);
/* A SEND of b, to the start of a's memory. */
void local_send(uint64_t addr, uint32_t len, enum ibv_wc_status status);

#endif
