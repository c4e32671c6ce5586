/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <assert.h>

#include "qp/loss.h"
#include "qp/multipath.h"

struct txmap *RARE
loss_begin(struct qp *qp, bool reads)
{
	struct txmaps *maps = qp->shared->txmaps;
	struct txmap *map;

	if (qp->req.missing) {
		assert(missing_of(qp)->reads == reads);
		return missing_of(qp);
	}
	map = maps != NULL ? txmap_get(maps, qp->req.una_psn, reads) : NULL;
	if (map == NULL)
		return NULL;
	qp->txmap = (uint8_t)(map - maps->all);
	qp->req.missing = true;
	return map;
}

void RARE
loss_end(struct qp *qp)
{
	struct txmap *map = missing_of(qp);

	/* Repeats are all that is due then. */
	if (map->reads)
		loss_step(&qp->req.loss_state, LOSS_EV_OVER);
	qp->req.missing = false;
	txmap_put(qp->shared->txmaps, map);
}

void RARE
loss_advanced(struct qp *qp, uint32_t before)
{
	struct txmap *map = missing_of(qp);
	uint32_t una = qp->req.una_psn;

	txmap_advanced(map, before, (una - before) & PSN_MASK);
	if (psn_diff(una, map->end) < 0)
		return;
	assert(!psn_bits_any(&map->arrived) && !psn_bits_any(&map->lost));
	loss_end(qp);
}

void RARE
loss_update(struct qp *qp)
{
	bool lost;

	if (!qp->req.missing || missing_of(qp)->reads)
		return;
	lost = psn_bits_any(&missing_of(qp)->lost);
	loss_step(&qp->req.loss_state, lost ? LOSS_EV_FOUND : LOSS_EV_NONE);
}

unsigned RARE
loss_find(struct qp *qp, uint32_t end, uint32_t echo, uint64_t now)
{
	struct txmap *map = missing_of(qp);
	struct psn_bits missing = txmap_missing(map);
	bool reorders = !map->reads && multipath_reorders(qp);
	unsigned lost = 0;
	uint32_t psn;

	if (psn_diff(end, map->end) > 0)
		end = map->end;
	if (reorders)
		multipath_acknowledged(qp);
	for (psn = psn_bits_next(&missing, qp->req.una_psn, end); psn != end;
		psn = psn_bits_next(&missing, psn_add(psn, 1), end)) {
		if (!(reorders ? multipath_lost(qp, psn)
			       : txmap_sent_before(map, psn, echo)) ||
			(loss_sent_lately(qp, psn, now) &&
				!txmap_sent_together(map, psn, echo)))
			continue;
		txmap_set_lost(map, psn);
		lost++;
		if (reorders)
			multipath_note_lost(qp, psn);
	}
	if (reorders && lost != 0)
		multipath_move_dead(qp);
	return lost;
}

unsigned RARE
loss_find_executed(struct qp *qp, uint32_t end, uint64_t now)
{
	struct txmap *map = missing_of(qp);
	struct psn_bits missing = txmap_missing(map);
	unsigned lost = 0;
	uint32_t psn;

	for (psn = psn_bits_next(&missing, qp->req.una_psn, end); psn != end;
		psn = psn_bits_next(&missing, psn_add(psn, 1), end)) {
		if (!txmap_sent_by(map, psn, psn_add(end, PSN_MASK)) ||
			loss_sent_lately(qp, psn, now))
			continue;
		txmap_set_lost(map, psn);
		lost++;
	}
	return lost;
}

void RARE
loss_sent_again(
	struct qp *qp, uint32_t psn, uint32_t packets, uint32_t next_psn, uint64_t now)
{
	struct requester *req = &qp->req;

	txmap_sent_again(missing_of(qp), psn, packets, next_psn, now);
	/* An answer would not tell which transmission has arrived (Karn). */
	if (((req->rtt_psn - psn) & PSN_MASK) < packets)
		req_measure_end(req);
}
