/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of loss states against a plain model of two facts: why packets are sent
 * again, and whether that is still to be done. All sequences of events. */
#include "case.h"
#include "recovery/loss_state.h"

#define EVENTS 7 /* in a row */

enum reason {
	REASON_NONE,
	REASON_PROBE,
	REASON_LOSS,
};

struct model {
	enum reason reason;
	bool due;
};

static bool reached[LOSS_STATES];
static unsigned sequences;

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
	case LOSS_OVER:
		*m = model_make(REASON_NONE, false);
		return true;
	case LOSS_TLP_TIMER:
		if (m->reason != REASON_NONE)
			return false;
		*m = model_make(REASON_PROBE, true);
		return true;
	case LOSS_FOUND:
		*m = model_make(REASON_LOSS, true);
		return true;
	case LOSS_NONE:
		if (m->reason == REASON_LOSS && m->due)
			*m = model_make(REASON_NONE, false);
		return true;
	case LOSS_REPEATED:
		/* No probe is a copy of a READ request. */
		if (m->reason == REASON_PROBE)
			return false;
		*m = model_make(REASON_LOSS, false);
		return true;
	default:
		if (!m->due)
			return false;
		*m = model_make(event == LOSS_SENT ? m->reason : REASON_NONE, false);
		return true;
	}
}

static void
sequences_check(const struct model *m, uint8_t state, unsigned left)
{
	assert_int_equal(state, state_of(m));
	reached[state] = true;
	sequences++;
	if (left == 0)
		return;
	for (unsigned e = 0; e < LOSS_EVENTS; e++) {
		enum loss_event event = (enum loss_event)e;
		struct model next = *m;
		uint8_t after = state;

		if (!model_step(&next, event)) {
			assert_int_equal(
				loss_next((enum loss_state)state, event), LOSS_STATES);
			continue;
		}
		loss_step(&after, event);
		sequences_check(&next, after, left - 1);
	}
}

TEST(all_sequences_of_loss_events)
{
	struct model m = {REASON_NONE, false};

	sequences_check(&m, LOSS_OPEN, EVENTS);
	for (unsigned i = 0; i < LOSS_STATES; i++)
		assert_true(reached[i]);
	assert_int_equal(sequences, 86739);
}
