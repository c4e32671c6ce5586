/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of loss states against a plain model of two facts: why packets are sent
 * again, and whether that is still to be done. */
#include "case.h"
#include "recovery/loss_state.h"

enum reason {
	REASON_NONE,
	REASON_PROBE,
	REASON_LOSS,
};

struct model {
	enum reason reason;
	bool due;
};

static enum loss_state
state_of(const struct model *m)
{
	if (m->reason == REASON_NONE)
		return LOSS_OPEN;
	if (m->reason == REASON_PROBE)
		return m->due ? LOSS_TLP_DUE : LOSS_TLP_SENT;
	return m->due ? LOSS_REPAIR_DUE : LOSS_REPAIR_SENT;
}

static struct model
model_make(enum reason reason, bool due)
{
	return (struct model){reason, due};
}

/* Returns false if the event cannot come. */
static bool
model_step(struct model *m, enum loss_event event)
{
	switch (event) {
	case LOSS_EV_OVER:
		*m = model_make(REASON_NONE, false);
		return true;
	case LOSS_EV_PEER:
		*m = model_make(m->due ? REASON_PROBE : REASON_NONE, m->due);
		return true;
	case LOSS_EV_TLP_TIMER:
		if (m->due)
			return false;
		*m = model_make(REASON_PROBE, true);
		return true;
	case LOSS_EV_FOUND:
		*m = model_make(REASON_LOSS, true);
		return true;
	case LOSS_EV_NONE:
		if (m->reason == REASON_LOSS && m->due)
			*m = model_make(REASON_NONE, false);
		return true;
	case LOSS_EV_REPEATED:
		/* No probe is a copy of a READ request. */
		if (m->reason == REASON_PROBE)
			return false;
		*m = model_make(REASON_LOSS, false);
		return true;
	default:
		if (!m->due)
			return false;
		*m = model_make(event == LOSS_EV_SENT ? m->reason : REASON_NONE, false);
		return true;
	}
}

static void
event_check(struct model m, enum loss_event event)
{
	uint8_t at = state_of(&m);

	if (!model_step(&m, event)) {
		assert_int_equal(loss_next((enum loss_state)at, event), LOSS_STATES);
		return;
	}
	loss_step(&at, event);
	assert_int_equal(at, state_of(&m));
}

/* The state is all that the table remembers, so there is nothing but single steps. */
TEST(each_event_in_each_state)
{
	static const struct model models[LOSS_STATES] = {
		{REASON_NONE, false},
		{REASON_PROBE, false},
		{REASON_LOSS, false},
		{REASON_PROBE, true},
		{REASON_LOSS, true},
	};

	for (unsigned i = 0; i < LOSS_STATES; i++) {
		assert_int_equal(state_of(&models[i]), i);
		for (unsigned e = 0; e < LOSS_EVENTS; e++)
			event_check(models[i], (enum loss_event)e);
	}
}
