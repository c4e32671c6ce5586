/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client says about itself when the daemon asks, in a part of the memory that they
 * share: its engine's counters, its SRQs, its QPs. The keeper writes it, so that neither
 * a post nor a poll knows of it; the daemon believes none of it and only passes it on.
 */
#ifndef ROCADE_SWITCH_REPORT_H
#define ROCADE_SWITCH_REPORT_H

#include "base/stats.h"

#define REPORT_QPS 1024
#define REPORT_SRQS 256

struct report_qp {
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t srqn; /* 0: it receives by an RQ of its own */
	uint32_t sq_fill, sq_size;
	uint32_t rq_fill, rq_size;
	uint8_t type;  /* enum ibv_qp_type */
	uint8_t state; /* enum ibv_qp_state */
	uint16_t reserved;
	struct qp_stats stats;
};

struct report_srq {
	uint32_t srqn;
	uint32_t fill, size;
	uint32_t limit; /* 0: none is armed */
	uint32_t qps;
	uint8_t xrc, error;
	uint16_t reserved;
	uint64_t limit_events;
};

struct report {
	uint32_t asked LINE_ALIGNED; /* the daemon's: the number of its question */
	uint32_t answered
		LINE_ALIGNED; /* the client's: of the one that it has answered */
	/* As many as there are; rows for the first ones only. */
	uint32_t srq_count, qp_count;
	struct port_stats stats;
	struct report_srq srqs[REPORT_SRQS];
	struct report_qp qps[REPORT_QPS];
};

#endif
