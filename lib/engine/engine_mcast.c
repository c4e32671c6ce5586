/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Multicast groups: delivery of packets to the attached UD QPs (annex A17.9). */
#include <string.h>

#include "engine/mcast_group.h"
#include "engine/pass.h"
#include "engine/sched.h"

/* Hands a copy in a buffer of its own to another engine, which releases it. */
static void
copy_hand_off(struct engine *e, struct engine *owner, const struct pkt *pkt)
{
	struct pkt copy;

	if (e->io.queue.ops->tx_alloc(e->io.queue.queue, &copy, 1) == 0) {
		e->stats.tx_no_buffer++;
		return;
	}
	if (copy.room >= pkt->len) {
		memcpy(copy.data, pkt->data, pkt->len);
		copy.len = pkt->len;
		copy.flags = pkt->flags | PKT_GROUP_COPY;
		if (engine_hand_off(e, owner, &copy))
			return;
	}
	e->io.queue.ops->tx_release(e->io.queue.queue, &copy, 1);
}

static void
group_deliver(struct engine *e, const struct mcast_group *group, const struct pkt *pkt,
	const struct pkt_view *view, const struct qp *sender, uint64_t now)
{
	struct mcast_member *m;
	uint32_t others = 0;

	static_assert(DEV_MAX_ENGINES <= 32, "a bit each");
	LIST_FOREACH(m, &group->members, link)
	{
		if (m->qp == sender)
			continue;
		if (m->qp->sched.engine != e) {
			others |= UINT32_C(1) << m->qp->sched.engine->index;
			continue;
		}
		qp_rx(m->qp, view, now);
		engine_schedule(e, m->qp);
	}
	if (pkt->flags & PKT_GROUP_COPY)
		return;
	for (; others != 0; others &= others - 1)
		copy_hand_off(e, e->dev->engines[__builtin_ctz(others)], pkt);
}

bool
engine_group_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	const struct qp *sender, uint64_t now)
{
	struct mcast_group *group;
	uint8_t gid[16], src[16];

	view_gids(view, src, gid);
	group = dev_group_find(e->dev, gid);
	if (group == NULL)
		return false;
	group_deliver(e, group, pkt, view, sender, now);
	return true;
}

void
engine_group_tx(struct engine *e, const struct qp *qp, const struct pkt *pkts, unsigned n,
	uint64_t now)
{
	struct mcast_group *group = dev_group_find(e->dev, qp->path.dgid);

	for (unsigned i = 0; group != NULL && i < n; i++) {
		struct pkt_view view;

		if (pkt_parse(&pkts[i], e->vlan, &view) == DROP_none &&
			view.dest_qpn == QPN_MULTICAST)
			group_deliver(e, group, &pkts[i], &view, qp, now);
	}
}
