/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_alloc.h"
#include "qp/multipath.h"
#include "qp/qp_state.h"
#include "qp/wr_row.h"

/* A packet that was sent this number of round trips before one that has arrived is lost.
 * Paths may have queues of different length, so it is not fewer. */
#define LATE_RTTS 4
#define LATE_SRTT_MAX_NS ((uint32_t)(250 * NS_PER_MS)) /* times have 32 bits */
/* Packets that a dead path has lost, at least. */
#define DEAD_LOST 3
/* Least time between the duplicates of one ePSN which show that acknowledgements get lost:
 * probes of one wait are further apart. */
#define DUPLICATES_MIN_NS (50 * NS_PER_US)
/* Least time between two moves of the responder: moves of a port reorder what is on its way. */
#define OWN_MOVE_MIN_NS ((uint32_t)NS_PER_MS)
/* The first pause. Each later one is twice as long, up to a second. */
#define PAUSE_NS ((uint32_t)NS_PER_MS)
#define PAUSES_MAX 10

#define STATES_BYTES (MULTIPATH_QPS * sizeof(struct multipath))

/* Control path. */

int
multipath_conf_read(uint8_t *paths, char *why, size_t size)
{
	const char *env = getenv("ROCADE_PATHS");

	if (env == NULL)
		return 0;
	if (env[0] < '1' || env[0] > '0' + PATHS_MAX || env[1] != '\0') {
		snprintf(why, size, "ROCADE_PATHS: %s: expected 1 to %d", env, PATHS_MAX);
		return -EINVAL;
	}
	*paths = (uint8_t)(env[0] - '0');
	return 0;
}

int
multipaths_init(struct multipaths *all, unsigned paths)
{
	assert(paths >= 2 && paths <= PATHS_MAX);
	all->paths = paths;
	all->touched = 0;
	SLIST_INIT(&all->free);
	all->all = alloc_get(&alloc_demand, "multipath", STATES_BYTES);
	return all->all != NULL ? 0 : -ENOMEM;
}

void
multipaths_fini(struct multipaths *all)
{
	struct multipath *mp;
	unsigned free = 0;

	if (all->all == NULL)
		return;
	SLIST_FOREACH (mp, &all->free, link)
		free++;
	assert(free == all->touched);
	alloc_put(&alloc_demand, all->all, STATES_BYTES);
}

/* ---- Source ports ---- */

static bool
port_in_use(const struct multipath *mp, unsigned paths, uint16_t port)
{
	for (unsigned i = 0; i < paths; i++) {
		if (mp->path[i].flip.port == port)
			return true;
	}
	return false;
}

/* Returns which bits of the port of qp->hdr the next port differs in. Only the lower 14 bits:
 * RoCEv2 uses 0xC000 to 0xFFFF. The multiplier spreads successive numbers evenly (Fibonacci
 * hashing). */
static uint16_t
port_draw(struct multipath *mp, unsigned paths)
{
	uint16_t port;

	do
		port = (uint16_t)(++mp->ports * UINT32_C(0x9E3779B1) >> 18);
	while (port_in_use(mp, paths, port));
	return port;
}

/* NULL: all are in use. */
static struct multipath *
state_get(struct multipaths *all)
{
	struct multipath *mp = SLIST_FIRST(&all->free);

	if (mp != NULL)
		SLIST_REMOVE_HEAD(&all->free, link);
	else if (all->touched < MULTIPATH_QPS)
		mp = &all->all[all->touched++];
	return mp;
}

void
multipath_attach(struct qp *qp)
{
	struct multipaths *all = qp->shared->multipaths;
	struct multipath *mp;

	mp = all != NULL && qp_reliable(qp) ? state_get(all) : NULL;
	if (mp == NULL)
		return;
	memset(mp, 0, sizeof(*mp));
	for (unsigned i = 1; i < all->paths; i++)
		mp->path[i].flip = port_flip_make(port_draw(mp, all->paths));
	qp->multipath = (uint16_t)(mp - all->all + 1);
}

void
multipath_detach(struct qp *qp)
{
	if (qp->multipath == 0)
		return;
	SLIST_INSERT_HEAD(&qp->shared->multipaths->free, multipath_of(qp), link);
	qp->multipath = 0;
}

/* Gives the path another port. That of path 0 is the one of qp->hdr: the others' stay. */
static void RARE
path_move(struct qp *qp, unsigned p)
{
	struct multipath *mp = multipath_of(qp);
	unsigned paths = qp->shared->multipaths->paths;
	struct mp_path *path = &mp->path[p];
	struct port_flip flip = port_flip_make(port_draw(mp, paths));

	path->lost = 0;
	path->heard_ns = (uint32_t)qp->shared->now;
	if (p != 0) {
		path->flip = flip;
		return;
	}
	path_hdr_flip_port(&qp->hdr, &flip);
	for (unsigned i = 1; i < paths; i++) {
		mp->path[i].flip.port ^= flip.port;
		mp->path[i].flip.crc ^= flip.crc;
	}
}

void
multipath_rollback(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);

	mp->heard = false;
	for (unsigned i = 0; i < qp->shared->multipaths->paths; i++)
		mp->path[i].heard = false;
}

/* The QP has no packet in flight. Earlier arrivals say nothing about later packets. */
static void
busy_begin(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);

	multipath_rollback(qp);
	for (unsigned i = 0; i < qp->shared->multipaths->paths; i++) {
		mp->path[i].lost = 0;
		mp->path[i].heard_ns = (uint32_t)qp->shared->now;
	}
}

void
multipath_reset(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);

	mp->naks = mp->pauses = 0;
	mp->duplicate = mp->moved = false;
	mp->una_psn = qp->req.una_psn;
	for (unsigned i = 0; i < PATHS_MAX; i++)
		mp->path[i].inflight = 0;
	for (unsigned i = 0; i < PSN_BITS; i++)
		mp->sent[i].path = PATH_NONE;
	busy_begin(qp);
}

/* Data path. */

static struct mp_sent *
sent_of(struct multipath *mp, uint32_t psn)
{
	return &mp->sent[psn % PSN_BITS];
}

/* SENDs and WRITEs behind a READ are sent on its path. A NAK that names the READ request
 * thus still says that it is lost. */
static bool
spreads(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);

	if (mp->naks == MULTIPATH_NAKS &&
		(int32_t)((uint32_t)qp->shared->now - mp->pause_ns) >= 0)
		mp->naks = 0;
	return multipath_reorders(qp) && qp->req.reads == 0 &&
	       !wr_has_response(wr_row(sq_slot(&qp->sq, qp->req.next_idx))->kind);
}

static unsigned
next_path(unsigned p, unsigned paths)
{
	return p + 1 == paths ? 0 : p + 1;
}

/* Returns the path with the fewest packets in flight; the next one in turn if there are
 * several. */
static unsigned
least_busy(const struct multipath *mp, unsigned paths, unsigned except)
{
	unsigned best = PATH_NONE, p = mp->next;

	for (unsigned i = 0; i < paths; i++, p = next_path(p, paths)) {
		if (p != except && (best == PATH_NONE || mp->path[p].inflight <
								 mp->path[best].inflight))
			best = p;
	}
	return best;
}

void
multipath_choose(struct qp *qp, struct pkt *pkt, struct icrc_sum *sum)
{
	const struct requester *req = &qp->req;
	struct multipath *mp = multipath_of(qp);
	unsigned paths = qp->shared->multipaths->paths, p = 0;
	struct mp_sent *sent = sent_of(mp, req->next_psn);
	bool again = psn_diff(req->next_psn, req->sent_psn) < 0;

	multipath_acknowledged(qp);
	if (req->next_psn == req->una_psn && !again)
		busy_begin(qp);
	/* A copy takes another path than the packet that is missing. */
	if (spreads(qp))
		p = least_busy(mp, paths, again ? sent->path : PATH_NONE);
	if (sent->path != PATH_NONE)
		mp->path[sent->path].inflight--;
	*sent = (struct mp_sent){
		.ns = (uint32_t)qp->shared->now, .path = (uint8_t)p, .again = again};
	mp->path[p].inflight++;
	mp->next = (uint8_t)next_path(p, paths);
	if (p == 0)
		return;
	frame_flip_port(&qp->hdr, pkt, sum, &mp->path[p].flip);
	qp->shared->stats->spread++;
}

/* ---- Arrivals and losses ---- */

void
multipath_arrived(struct qp *qp, uint32_t psn)
{
	struct multipath *mp = multipath_of(qp);
	struct mp_sent *sent = sent_of(mp, psn);
	struct mp_path *path;

	if (sent->path == PATH_NONE)
		return;
	path = &mp->path[sent->path];
	sent->path = PATH_NONE;
	path->inflight--;
	/* Of a packet that was sent again either transmission may have arrived. */
	if (sent->again)
		return;
	path->lost = 0;
	path->heard_ns = (uint32_t)qp->shared->now;
	if (!path->heard || psn_diff(psn, path->last_psn) > 0) {
		path->heard = true;
		path->last_psn = psn;
		path->last_sent_ns = sent->ns;
	}
	if (!mp->heard || (int32_t)(sent->ns - mp->last_sent_ns) > 0) {
		mp->heard = true;
		mp->last_sent_ns = sent->ns;
	}
}

void
multipath_acknowledged(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);
	uint32_t una = qp->req.una_psn, psn = mp->una_psn;

	/* A READ takes more PSNs than there are packets of which the path is noted. */
	if (((una - psn) & PSN_MASK) > PSN_BITS)
		psn = (una - PSN_BITS) & PSN_MASK;
	for (; psn != una; psn = psn_add(psn, 1))
		multipath_arrived(qp, psn);
	mp->una_psn = una;
}

bool
multipath_nak(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);

	if (qp->sacks || ++mp->naks < MULTIPATH_NAKS)
		return true;
	mp->pause_ns = (uint32_t)qp->shared->now + (PAUSE_NS << mp->pauses);
	if (mp->pauses < PAUSES_MAX)
		mp->pauses++;
	return false;
}

/* Of packets of one path no later one has to arrive: see multipath.h. */
static uint32_t
late_ns(const struct qp *qp)
{
	uint32_t srtt_ns = qp_srtt_ns(qp);

	return srtt_ns != 0 ? LATE_RTTS * RTE_MIN(srtt_ns, LATE_SRTT_MAX_NS)
			    : (uint32_t)QP_SRTT_UNKNOWN_NS;
}

bool
multipath_is_late(const struct qp *qp, uint32_t psn)
{
	const struct mp_sent *sent = sent_of(multipath_of(qp), psn);

	return (uint32_t)qp->shared->now - sent->ns > late_ns(qp);
}

bool
multipath_lost(const struct qp *qp, uint32_t psn)
{
	struct multipath *mp = multipath_of(qp);
	const struct mp_sent *sent = sent_of(mp, psn);
	const struct mp_path *path;
	int32_t later;

	/* The peer had it, and has dropped it. */
	if (sent->path == PATH_NONE)
		return true;
	if (!mp->heard)
		return false;
	if ((int32_t)(mp->last_sent_ns - sent->ns - late_ns(qp)) > 0)
		return true;
	path = &mp->path[sent->path];
	later = (int32_t)(path->last_sent_ns - sent->ns);
	/* Packets of one burst have one time. */
	return path->heard && (later > 0 || (later == 0 && !sent->again &&
						    psn_diff(psn, path->last_psn) < 0));
}

void
multipath_note_lost(struct qp *qp, uint32_t psn)
{
	struct multipath *mp = multipath_of(qp);
	const struct mp_sent *sent = sent_of(mp, psn);

	if (sent->path != PATH_NONE && mp->path[sent->path].lost != UINT8_MAX)
		mp->path[sent->path].lost++;
}

void
multipath_move_dead(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);
	uint32_t now = (uint32_t)qp->shared->now, silent_ns = late_ns(qp);

	for (unsigned i = 0; i < qp->shared->multipaths->paths; i++) {
		const struct mp_path *path = &mp->path[i];

		if (path->lost < DEAD_LOST || now - path->heard_ns < silent_ns)
			continue;
		path_move(qp, i);
		qp->shared->stats->paths_moved++;
	}
}

void
multipath_timeout(struct qp *qp)
{
	for (unsigned i = 0; i < qp->shared->multipaths->paths; i++)
		path_move(qp, i);
	qp->shared->stats->paths_moved += qp->shared->multipaths->paths;
}

/* ---- The responder ---- */

void
multipath_duplicate(struct qp *qp)
{
	struct multipath *mp = multipath_of(qp);
	uint32_t now = (uint32_t)qp->shared->now;

	if (!mp->duplicate || mp->duplicate_epsn != qp->resp.epsn) {
		mp->duplicate = true;
		mp->duplicate_epsn = qp->resp.epsn;
		mp->duplicate_ns = now;
	} else if (now - mp->duplicate_ns >= DUPLICATES_MIN_NS && !qp->resp_due &&
		   (!mp->moved || now - mp->moved_ns >= OWN_MOVE_MIN_NS)) {
		mp->duplicate = false;
		mp->moved = true;
		mp->moved_ns = now;
		path_move(qp, 0);
		qp->shared->stats->paths_moved++;
	}
}
