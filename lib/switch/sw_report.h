/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's statistics, in memory that it shares with the daemon: its engine's counters,
 * its SRQs, its peers, its QPs. The client's progress thread writes them when the daemon
 * asks, so that neither a post nor a poll pays for it. The daemon does not trust them: it
 * passes on a copy, bounded by what it knows itself.
 */
#ifndef ROCADE_SWITCH_REPORT_H
#define ROCADE_SWITCH_REPORT_H

#include "base/base_stats.h"
#include "qp/flight_record.h"
#include "qp/peer_info.h"

#define REPORT_QPS 1024
#define REPORT_SRQS 256
#define REPORT_PEERS 64

struct report_qp {
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t srqn; /* 0: it has its own RQ */
	uint32_t sq_fill, sq_size;
	uint32_t rq_fill, rq_size;
	uint8_t type;  /* enum ibv_qp_type */
	uint8_t state; /* enum ibv_qp_state */
	uint16_t reserved;
	/* in nanoseconds, see qp/send_age.h */
	uint64_t sq_unacked_ns, sq_unsignaled_ns;
	struct qp_stats stats;
};

struct report_srq {
	uint32_t srqn;
	uint32_t fill, size;
	uint32_t limit; /* 0: not armed */
	uint32_t qps;
	uint8_t xrc, error;
	uint16_t reserved;
	uint64_t limit_events;
};

enum report_flight_state {
	REPORT_FLIGHT_NO_QP, /* the client has no such QP */
	REPORT_FLIGHT_OFF,   /* it keeps no events */
	REPORT_FLIGHT_KEPT,
};

/* The record of one QP, written on a request of its own. */
struct report_flight {
	uint32_t written_gen; /* of the request that this answers */
	uint32_t state;       /* enum report_flight_state */
	struct flight_copy copy;
};

struct report {
	/* generation that the daemon has requested: only in copies that it passes on */
	uint32_t requested_gen;
	uint32_t written_gen; /* generation that the client has written */
	/* Numbers of SRQs, QPs and peers; the first ones have rows below. */
	uint32_t srq_count, qp_count;
	uint32_t peer_count;
	uint32_t reserved;
	struct port_stats stats;
	struct report_srq srqs[REPORT_SRQS];
	struct peer_info peers[REPORT_PEERS];
	struct report_qp qps[REPORT_QPS];
	struct report_flight flight;
};

#endif
