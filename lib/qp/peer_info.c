/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "qp/peer.h"
#include "qp/peer_info.h"
#include "wire/psn.h"

void
peer_info_fill(struct peer_info *info, const struct peer *peer, unsigned engine)
{
	*info = (struct peer_info){.engine = engine,
		.qps = peer->qps,
		.qps_blocked = peer->qps_blocked,
		.inflight = peer->inflight,
		.window = peer->window,
		.cap = peer->cap,
		.srtt_ns = peer->srtt_ns};
	memcpy(info->gid, peer->gid, sizeof(info->gid));
	if (!cc_is_on(&peer->cc))
		return;
	info->cc_window = peer->cc.cwnd;
	info->cc_delay_ns = peer->cc.delay_ns;
	info->cc_target_ns = cc_target_ns(&peer->cc);
}

void
peer_info_clamp(struct peer_info *info, uint32_t qps)
{
	info->qps = RTE_MIN(info->qps, qps);
	info->qps_blocked = RTE_MIN(info->qps_blocked, info->qps);
	/* A READ may exceed the window, but not a QP's range of PSNs. */
	info->inflight = (uint32_t)RTE_MIN(
		(uint64_t)info->inflight, (uint64_t)info->qps * PSN_MASK);
	info->cap = RTE_MIN(info->cap, CC_CAP_MAX);
	info->window = RTE_MIN(info->window, info->cap);
	info->cc_window = RTE_MIN(info->cc_window, info->cap << CC_SHIFT);
}
