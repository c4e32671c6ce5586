/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "qp/flight.h"
#include "wire/psn.h"

/* Control path. */

int
flight_create(struct qp *qp)
{
	qp->sq.flight = alloc_get(qp->sq.mem, "flight recorder", sizeof(struct flight));
	if (qp->sq.flight == NULL)
		return -ENOMEM;
	qp->sq.flight->count = 0;
	return 0;
}

void
flight_destroy(struct qp *qp)
{
	if (qp->sq.flight != NULL)
		alloc_put(qp->sq.mem, qp->sq.flight, sizeof(struct flight));
	qp->sq.flight = NULL;
}

bool
flight_copy_get(const struct qp *qp, struct flight_copy *copy)
{
	if (qp->sq.flight == NULL)
		return false;
	copy->asked = 0;
	copy->qpn = qp->qpn;
	copy->dest_qpn = qp->dest_qpn;
	copy->type = qp->type;
	copy->flight = *qp->sq.flight;
	return true;
}

/* Data path. */

void RARE
flight_write(struct qp *qp, enum flight_kind kind, uint32_t psn, uint32_t value)
{
	struct flight *f = qp->sq.flight;

	if (f == NULL)
		return;
	f->events[f->count++ % FLIGHT_EVENTS] = (struct flight_event){
		.when = qp->shared->now << 8 | kind, .psn = psn, .value = value};
}

void RARE
flight_received(struct qp *qp, const struct pkt_view *view)
{
	struct flight *f = qp->sq.flight;
	struct flight_event *last;

	if (f != NULL && f->count != 0 && !op_is_first(view->op)) {
		last = &f->events[(f->count - 1) % FLIGHT_EVENTS];
		if ((last->when & 0xFF) == FLIGHT_RECEIVED &&
			op_rows[last->value & 0xFF].kind == view->op->kind &&
			psn_add(last->psn, last->value >> 8) == view->psn &&
			last->value >> 8 < PSN_MASK) {
			last->value += 1 << 8;
			return;
		}
	}
	flight_write(qp, FLIGHT_RECEIVED, view->psn, view->opcode | 1 << 8);
}

void RARE
flight_error(const struct qp *qp)
{
	struct flight_log *log = qp->shared->flight;

	if (log == NULL || qp->sq.flight == NULL)
		return;
	for (unsigned i = 0; i < FLIGHT_COPIES; i++) {
		struct flight_slot *slot = &log->slots[i];
		uint32_t expected = FLIGHT_FREE;

		/* Engines compete. Pairs with the release in copies_print(). */
		if (!__atomic_compare_exchange_n(&slot->state, &expected, FLIGHT_CLAIMED,
			    false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		(void)flight_copy_get(qp, &slot->copy);
		/* Pairs with the acquire in copies_print(). */
		__atomic_store_n(&slot->state, FLIGHT_WAITS, __ATOMIC_RELEASE);
		(void)sem_post(&log->waiting);
		return;
	}
	__atomic_fetch_add(&log->lost, 1, __ATOMIC_RELAXED);
}
