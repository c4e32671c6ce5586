/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Without going back, a requester also sends single packets again: a tail-loss probe, or
 * a repair of packets that are known to be lost. One state, LOSS_OPEN at first, which only
 * loss_step() changes, by the table of loss_state.def.
 */
#ifndef ROCADE_RECOVERY_LOSS_STATE_H
#define ROCADE_RECOVERY_LOSS_STATE_H

#include "base/common.h"

enum loss_state {
	LOSS_OPEN,        /* neither (as Linux's TCP_CA_Open) */
	LOSS_TLP_SENT,    /* a copy of packet una_psn, which shows what else is missing */
	LOSS_REPAIR_SENT, /* copies or repeats; none is due */
	LOSS_TLP_DUE,     /* from here on: a packet is to be sent again */
	LOSS_REPAIR_DUE,
	LOSS_STATES
};

enum loss_event {
	/* una_psn moves; the requester goes back or stops; an RNR wait begins; the record of
	 * READ responses ends; or a NAK shows that the peer has dropped what it held */
	LOSS_EV_OVER,
	/* The QP gets another peer, which may hold nothing. If packets are due, una_psn is sent,
	 * as a probe. */
	LOSS_EV_PEER,
	/* no answer for the wait of a probe, and una_psn is that of a SEND or WRITE */
	LOSS_EV_TLP_TIMER,
	LOSS_EV_FOUND, /* a packet is lost, and has not been sent again since */
	LOSS_EV_NONE,  /* the record of missing packets has no such packet */
	/* READ responses are missing, and no further repeat may be sent now */
	LOSS_EV_REPEATED,
	LOSS_EV_SENT,   /* the probe or the first copies were sent */
	LOSS_EV_UNSENT, /* the memory of the packet that is due is not granted any more */
	LOSS_EVENTS
};

/* Returns whether a packet is to be sent again in this state. */
static inline bool
loss_is_due(uint8_t state)
{
	return state >= LOSS_TLP_DUE;
}

/* Returns the next state; LOSS_STATES: the event cannot come. */
enum loss_state loss_next(enum loss_state state, enum loss_event event);

/* The event can come (asserted). */
void loss_step(uint8_t *state, enum loss_event event);

#endif
