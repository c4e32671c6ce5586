/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Whether a requester sends packets again before their turn: a tail-loss probe, or a
 * repair of packets that are known to be lost. One state, which only loss_step() changes,
 * by the table of loss_state.def.
 */
#ifndef ROCADE_RECOVERY_LOSS_STATE_H
#define ROCADE_RECOVERY_LOSS_STATE_H

#include "base/common.h"

enum loss_state {
	LOSS_OPEN,        /* neither */
	LOSS_TLP_SENT,    /* a copy of packet una_psn, which shows what else is missing */
	LOSS_REPAIR_SENT, /* all that is known to be lost, as far as the peer takes it */
	LOSS_TLP_DUE,     /* from here on: a packet is to be sent again */
	LOSS_REPAIR_DUE,
	LOSS_STATES
};

enum loss_event {
	/* una_psn has advanced, or no packet is to be sent again before its turn */
	LOSS_OVER,
	LOSS_TLP_TIMER, /* una_psn has not advanced for a while */
	LOSS_FOUND,     /* a packet is lost, and has not been sent again since */
	LOSS_NONE,      /* the record of missing packets has no such packet */
	/* READ responses are missing, and all are requested again that may be now */
	LOSS_REPEATED,
	LOSS_SENT,   /* what is due was sent, or the first of it */
	LOSS_UNSENT, /* what is due cannot be sent: its memory is not granted any more */
	LOSS_EVENTS
};

/* Returns the next state; LOSS_STATES: the event cannot come. */
enum loss_state loss_next(enum loss_state state, enum loss_event event);

/* The event can come (asserted). */
void loss_step(uint8_t *state, enum loss_event event);

#endif
