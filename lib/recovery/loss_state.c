/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <assert.h>

#include "recovery/loss_state.h"

/* 0: the event cannot come. */
static const uint8_t after[LOSS_STATES][LOSS_EVENTS] = {
#define LOSS(from, event, to) [LOSS_##from][LOSS_EV_##event] = LOSS_##to + 1,
#include "recovery/loss_state.def"
};

enum loss_state
loss_next(enum loss_state state, enum loss_event event)
{
	uint8_t next = after[state][event];

	return next != 0 ? (enum loss_state)(next - 1) : LOSS_STATES;
}

void
loss_step(uint8_t *state, enum loss_event event)
{
	enum loss_state next = loss_next((enum loss_state) * state, event);

	assert(next != LOSS_STATES);
	*state = (uint8_t)next;
}
