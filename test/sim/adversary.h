/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adversary: a machine that breaks the rules. It answers ARP and ND, and sends
 * packets of any opcode, PSN, key, length and header with a correct ICRC. Its victims are
 * QPs connected to it, each of which grants it one buffer. A victim may fail in any way.
 * Nothing else may be affected: neither other QPs, which the adversary addresses too, nor
 * memory outside of that buffer.
 */
#ifndef ROCADE_SIM_ADVERSARY_H
#define ROCADE_SIM_ADVERSARY_H

#include "end.h"

/* Decides whether there is an adversary, and its victims. Adds their completions to the
 * sizes of the CQs. */
void adversary_plan(void);
void adversary_open(void);
void adversary_close(void);

bool adversary_active(void);
/* Does one operation of the adversary or of a victim's application. */
bool adversary_op(void);
/* Handles a victim's completion. Returns false for completions of other QPs. */
bool adversary_wc(struct cq_model *cq, const struct ibv_wc *wc);
/* Returns how many receives of an SRQ are held by victims. */
uint32_t adversary_held(const struct recv_model *m);

#endif
