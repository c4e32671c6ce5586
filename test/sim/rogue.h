/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine that does not keep to the rules: it answers ARP and ND, and sends packets of
 * any opcode, PSN, key, length and header, with a right ICRC. Its victims are QPs that
 * are connected to it and grant it one buffer. Whatever becomes of them, nobody else may
 * notice: neither the QPs of others, to which it talks too, nor memory beside that
 * buffer.
 */
#ifndef ROCADE_SIM_ROGUE_H
#define ROCADE_SIM_ROGUE_H

#include "end.h"

/* Decides whether there is one, and what its victims are; the CQs learn what they hold.
 */
void
rogue_plan(void);
void
rogue_open(void);
void
rogue_close(void);

bool
rogue_active(void);
/* Something it does, or an application of its victims. */
bool
rogue_op(void);
/* Whether the completion is a victim's, who has then dealt with it. */
bool
rogue_wc(struct cq_model *cq, const struct ibv_wc *wc);
/* Receives of an SRQ that victims have in hand. */
uint32_t
rogue_held(const struct recv_model *m);

#endif
