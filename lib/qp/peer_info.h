/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* The state of a peer (peer.h) as operators are shown it. Clients of the daemon also report
 * it in memory that they share with the daemon (switch/sw_report.h). */
#ifndef ROCADE_QP_PEER_INFO_H
#define ROCADE_QP_PEER_INFO_H

#include "qp/cc.h"

struct peer;

struct peer_window_info {
	uint32_t qps_blocked; /* QPs that wait for the window */
	uint32_t inflight;    /* packets */
	uint32_t window;      /* packets; 0: closed until the time of the next one */
	/* Congestion control. Packets << CC_SHIFT; 0: it is off, and what follows does not
	 * count. */
	uint32_t cc_window;
	uint32_t cc_delay_ns; /* of the last round trip; UINT32_MAX: no sample yet */
	uint32_t cc_target_ns;
};

struct peer_info {
	uint8_t gid[16];
	uint32_t engine;
	uint32_t qps;
	uint32_t cap;     /* of both windows */
	uint32_t srtt_ns; /* 0: no sample yet */
	struct peer_window_info send, read;
};
static_assert(sizeof(struct peer_info) == 80, "same size in every build");

/* Congestion control is on for both windows or for none. */
static inline bool
peer_info_cc_is_on(const struct peer_info *info)
{
	return info->send.cc_window != 0;
}

/* See cc_is_paced(). */
static inline bool
peer_info_is_paced(const struct peer_window_info *info)
{
	return info->cc_window != 0 && info->cc_window < CC_ONE;
}

/* With the lock of this engine held. */
void peer_info_fill(struct peer_info *info, const struct peer *peer, unsigned engine);

/* Reduces what another process says of a peer to what is possible. qps: the most QPs that
 * it can have. */
void peer_info_clamp(struct peer_info *info, uint32_t qps);

#endif
