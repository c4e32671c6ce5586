/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "qp/peer.h"
#include "qp/peer_info.h"
#include "wire/psn.h"

static struct peer_window_info
window_info(const struct peer_window *w)
{
	struct peer_window_info info = {
		.qps_blocked = w->qps_blocked,
		.inflight = w->inflight,
		.window = w->window,
	};

	if (cc_is_on(w->cc)) {
		info.cc_window = w->cc->cwnd;
		info.cc_delay_ns = w->cc->delay_ns;
		info.cc_target_ns = w->cc->delay_unknown ? 0 : cc_target_ns(w->cc);
	}
	return info;
}

void
peer_info_fill(struct peer_info *info, const struct peer *peer, unsigned engine)
{
	*info = (struct peer_info){.engine = engine,
		.qps = peer->qps,
		.cap = peer->send.cap,
		.srtt_ns = peer->srtt_ns,
		.send = window_info(&peer->send),
		.read = window_info(&peer->read)};
	memcpy(info->gid, peer->gid, sizeof(info->gid));
}

static void
window_clamp(struct peer_window_info *w, const struct peer_info *info)
{
	w->qps_blocked = RTE_MIN(w->qps_blocked, info->qps);
	/* A READ may exceed the window, but not a QP's range of PSNs. */
	w->inflight =
		(uint32_t)RTE_MIN((uint64_t)w->inflight, (uint64_t)info->qps * PSN_MASK);
	w->window = RTE_MIN(w->window, info->cap);
	w->cc_window = RTE_MIN(w->cc_window, info->cap << CC_SHIFT);
}

void
peer_info_clamp(struct peer_info *info, uint32_t qps)
{
	info->qps = RTE_MIN(info->qps, qps);
	info->cap = RTE_MIN(info->cap, CC_CAP_MAX);
	window_clamp(&info->send, info);
	window_clamp(&info->read, info);
}
