/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * A client asks whether the answers to what one of its QPs has sent may still be on their way
 * (docs/protocol.md 7.6). The question and the reply are descriptors in the rings, so the question comes
 * behind the packets of the QP, and the reply behind the answers. The switch keeps nothing of it: the
 * reply says how far the packets are, and the client puts that into its next question.
 *
 * The switch tells a QP nothing of a client but that of the QP's peer, if the two have registered each
 * other: whether it has answered all that came for it.
 */
#ifndef ROCADE_SWITCH_SW_ASK_H
#define ROCADE_SWITCH_SW_ASK_H

#include "switch/sw.h"

/* ring_desc.len: a number of the client's in the high bits, and one of these. */
#define SW_ASK_STEP_BITS 2
enum sw_ask_step {
	SW_ASK_BEGIN,
	SW_ASK_TAKEN,     /* mark: of the ring to the peer: is that answered? */
	SW_ASK_FORWARDED, /* mark: of the ring from the peer: is that forwarded? */
	SW_ASK_DONE,      /* no answer is on its way behind this reply */
};
#define SW_ASK_STEP(len) ((len) & ((1u << SW_ASK_STEP_BITS) - 1))

/* Handles the question. Returns false if it has to wait in its ring. */
bool sw_ask(struct sw_client *from, const struct ring_desc *ask);

/* Called by sw_take.c: of another thread. */
void sw_ask_taken(
	struct sw_thread *t, struct sw_client *from, const struct ring_desc *ask);
void sw_ask_reply_taken(struct sw_client *to, const struct ring_desc *reply);

#endif
