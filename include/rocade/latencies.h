/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long requests of a port took, as histograms.
 *
 * The engine measures the first request of each RC, UC and XRC QP, and then every
 * seventeenth, unless an earlier measured one is under way. It measures from the pass in
 * which the request gets its first packet to the one in which it completes, with all
 * retransmissions: RC and XRC requests complete with the peer's answer, UC requests when
 * their last packet is sent. Requests that fail do not count. Datagrams have no
 * histogram.
 */
#ifndef ROCADE_LATENCIES_H
#define ROCADE_LATENCIES_H

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROCADE_LATENCY_BUCKETS 24

/* Of the QPs of a type and an operation. */
struct rocade_latency {
	const char *type; /* constant: "RC", "UC" or "XRC" */
	/* constant: "send", "write", "read", "atomic", "atomic_write" or "flush" */
	const char *operation;
	uint64_t sum_ns;
	/* buckets[i]: how many took more than the limit of buckets[i - 1] and up to
	 * 512 << i ns; the last one: all that took longer */
	uint64_t buckets[ROCADE_LATENCY_BUCKETS];
};

/* Fills up to n rows, one for each type and operation, with the sums of all engines.
 * Returns how many rows there are. rows may be NULL. Any thread. */
unsigned rocade_port_latencies_sized(struct rocade_port *port,
	struct rocade_latency *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_latencies(struct rocade_port *port, struct rocade_latency *rows, unsigned n)
{
	return rocade_port_latencies_sized(port, rows, n, sizeof(*rows));
}

/*
 * Where the time of a slow request went. Each engine keeps a measured request for five
 * minutes after it has completed, unless four slower ones of its type of QP and operation
 * are kept or come meanwhile. The times of these requests begin earlier than in the
 * histograms: with the pass in which the engine found the request in its queue, or that
 * ended the measured request before it. Times are in nanoseconds; the first nine add up
 * to took_ns.
 */
struct rocade_slow_request {
	const char *type; /* constants, as in struct rocade_latency */
	const char *operation;
	/* behind earlier requests of its QP, or until it was its turn */
	uint64_t queue_ns;
	uint64_t window_ns;    /* for room in the window of the peer */
	uint64_t rnr_ns;       /* until the peer had a receive (RNR) */
	uint64_t neighbour_ns; /* for the MAC address of the next hop */
	uint64_t port_ns;      /* while the port took no packets */
	uint64_t nak_ns;       /* until the peer had shown that packets were missing */
	/* until a timer had packets sent again: they were lost, or the answer was late */
	uint64_t timer_ns;
	uint64_t answer_ns; /* for the path and the peer */
	/* at the end, while the engine had not emptied the receive queue, so that the
	 * answer may have waited there: no pass ran, or more packets came than a pass
	 * takes. While a thread sleeps that packets wake up the time counts as
	 * answer_ns */
	uint64_t engine_ns;
	uint64_t took_ns;
	/* From the engine's pass before to the one that found the request, which may have
	 * waited that long; took_ns does not include it. 0: the post of the request sent
	 * it. */
	uint64_t engine_before_ns;
	uint64_t age_ns; /* it completed this long ago */
	uint32_t qpn;
	uint32_t bytes; /* of the message */
	/* of its QP meanwhile: request packets that were sent again, timers that expired,
	 * NAKs and the like that showed a loss, and RNR NAKs */
	uint32_t resent, timers, naks, rnr_naks;
};

/* Fills up to n rows: by engine, type and operation, the slowest first. Returns the number
 * of rows that exist now; a later call may return another. rows may be NULL. Any thread;
 * no engine waits. */
unsigned rocade_port_slowest_sized(struct rocade_port *port,
	struct rocade_slow_request *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_slowest(
	struct rocade_port *port, struct rocade_slow_request *rows, unsigned n)
{
	return rocade_port_slowest_sized(port, rows, n, sizeof(*rows));
}

#ifdef __cplusplus
}
#endif

#endif
