/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The flight recorder: the last FLIGHT_EVENTS events of a QP, with their times. Off unless
 * dev_conf.flight_recorder is set: then a QP has no memory for it, and each place that notes an
 * event costs a test of qp_shared.flight_on. The holder of the engine lock writes and reads.
 *
 * A QP that enters ERR because of a fault leaves a copy of its record in struct flight_log, which
 * all engines of a device share. A thread (engine/dev_flight.c) prints the copies, so that no
 * engine does. Faults can be provoked by other hosts: while all copies wait to be printed, further
 * ones are only counted.
 */
#ifndef ROCADE_QP_FLIGHT_H
#define ROCADE_QP_FLIGHT_H

#include <semaphore.h>

#include "qp/flight_record.h"
#include "qp/qp.h"

#define FLIGHT_COPIES 8

enum flight_slot_state { FLIGHT_FREE, FLIGHT_CLAIMED, FLIGHT_WAITS };

struct flight_log {
	sem_t waiting; /* counts the copies that wait */
	uint32_t lost; /* faults of QPs for which no copy was free */
	struct flight_slot {
		uint32_t state; /* enum flight_slot_state */
		struct flight_copy copy;
	} slots[FLIGHT_COPIES];
};

/* Gives the QP a record. Returns 0 or -ENOMEM. qp_fini() frees it. */
int flight_create(struct qp *qp);
void flight_destroy(struct qp *qp);

void flight_write(struct qp *qp, enum flight_kind kind, uint32_t psn, uint32_t value);
/* As flight_write() with FLIGHT_RECEIVED, but the packets of a message are one event. */
void flight_received(struct qp *qp, const struct pkt_view *view);
/* The QP has entered ERR because of a fault: copies its record to the log. */
void flight_error(const struct qp *qp);

/* Copies the record. Returns false if the QP has none. */
bool flight_copy_get(const struct qp *qp, struct flight_copy *copy);

static inline void
flight_note(struct qp *qp, enum flight_kind kind, uint32_t psn, uint32_t value)
{
	if (unlikely(qp->shared->flight_on))
		flight_write(qp, kind, psn, value);
}

/* Two halves of a value. */
static inline uint32_t
flight_pair(uint32_t low, uint32_t high)
{
	return (low & 0xFFFF) | high << 16;
}

#endif
