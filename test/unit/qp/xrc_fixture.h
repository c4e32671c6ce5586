/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixture: an initiator and its target, and a second SRQ that requests may name. */
#ifndef ROCADE_TEST_QP_XRC_FIXTURE_H
#define ROCADE_TEST_QP_XRC_FIXTURE_H

#include "qp_link.h"

#define XRC_PD_OTHER 11
#define XRC_MTU 1024

/* Another SRQ of b, with another CQ and PD. */
struct second {
	struct srq srq;
	struct cq cq;
	uint32_t key; /* of all of b's memory, local and remote */
};

extern struct qp_link p;
extern struct second second;

void xrc_init(void);
void second_init(uint32_t xrcd);
/* Removes the SRQ as the engine does: no later packet finds it. */
void second_remove(void);
void second_fini(void);
void xrc_send_to(uint32_t srqn, uint64_t wr_id, uint32_t offset, uint32_t len);
/* Request 11 is refused as invalid and both ends are in ERR. `first` is the first event
 * of b. */
void xrc_expect_refused(enum ibv_event_type first);

#endif
