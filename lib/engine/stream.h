/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Predicts whether the stream of packets that come for a QP goes on. If so, what each packet costs can be
 * spent once for several of them (ack_coalesce.h). Something waits for the next ones meanwhile. The
 * prediction bounds what that costs when none come:
 *
 * A stream is on when `needed` packets have come, and the passes that found some were less than
 * STREAM_GAP_NS apart. After a gap while something has waited, `needed` is multiplied by STREAM_BACKOFF, up
 * to STREAM_NEEDED_GAP. So if each wait is in vain, 4 us are lost in that many packets.
 * If the pass that found the gap came only after STREAM_LATE_NS, because the thread computes between its
 * polls, a peer may have waited for longer than all that was saved: up to STREAM_NEEDED_LATE are needed.
 * While waits are not in vain, `needed` falls again.
 */
#ifndef ROCADE_ENGINE_STREAM_H
#define ROCADE_ENGINE_STREAM_H

#include "base/common.h"

/* Longer than it takes to send a burst of 16 packets, also between far cores. */
#define STREAM_GAP_NS (4 * NS_PER_US)
#define STREAM_LATE_NS (100 * NS_PER_US)
#define STREAM_NEEDED_FIRST 64
#define STREAM_NEEDED_GAP 1024
#define STREAM_NEEDED_LATE 65536
#define STREAM_BACKOFF 4

struct qp;

/* Zeroed, but for needed: STREAM_NEEDED_FIRST. */
struct stream {
	const struct qp *qp; /* NULL: there is no stream */
	uint64_t last_ns;    /* the time of the last pass that found any of it */
	uint32_t count;      /* that have come, up to STREAM_NEEDED_LATE */
	uint32_t needed;     /* before the stream is on */
	bool is_on;          /* also read without the engine lock */
};

static inline void
stream_count(struct stream *s, const struct qp *qp, uint32_t count)
{
	s->qp = qp;
	s->count = count;
	__atomic_store_n(&s->is_on, count >= s->needed, __ATOMIC_RELAXED);
}

/* Ends the stream, if it is that of the QP. */
static inline void
stream_forget(struct stream *s, const struct qp *qp)
{
	if (s->qp == qp)
		stream_count(s, NULL, 0);
}

/* Returns whether too long ago for the stream any came. */
static inline bool
stream_has_gap(const struct stream *s, uint64_t now)
{
	return now - s->last_ns >= STREAM_GAP_NS;
}

/* A pass has found n of the QP. Returns whether the stream is on. */
static inline bool
stream_go_on(struct stream *s, const struct qp *qp, uint32_t n, uint64_t now)
{
	bool goes_on = s->qp == qp && !stream_has_gap(s, now);

	stream_count(s, qp, goes_on ? RTE_MIN(s->count + n, STREAM_NEEDED_LATE + 0u) : 0);
	s->last_ns = now;
	return s->is_on;
}

/* Something has waited, and more came in time. */
static inline void
stream_succeeded(struct stream *s)
{
	uint32_t above = s->needed - STREAM_NEEDED_FIRST;

	s->needed -= above > STREAM_NEEDED_GAP ? 1 : (above + 15) / 16;
}

/* Something has waited, and there was a gap. */
static inline void
stream_failed(struct stream *s, uint64_t now)
{
	bool late = now - s->last_ns >= STREAM_LATE_NS;
	uint32_t most = late ? STREAM_NEEDED_LATE : STREAM_NEEDED_GAP;

	s->needed = RTE_MAX(s->needed, RTE_MIN(s->needed * STREAM_BACKOFF, most));
	stream_count(s, NULL, 0);
}

#endif
