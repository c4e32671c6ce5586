/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long requests of a port took, as histograms.
 *
 * Of an RC, UC or XRC QP the first request is measured, and then every seventeenth, if the last one that is measured has
 * completed. The time is that from the pass of the engine in which the request gets its first packet to the one in
 * which it completes, with all retransmissions: RC and XRC requests complete with the peer's answer, UC requests when
 * their last packet is sent. Requests that fail do not count. Datagrams have no histogram.
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
	/* buckets[i]: how many took up to 512 << i ns, and longer than those of buckets[i - 1]; the last one: how many took
	 * longer than all others */
	uint64_t buckets[ROCADE_LATENCY_BUCKETS];
};

/* Fills up to n rows with the sums of all engines. Returns how many there are: one for each type and operation. rows
 * may be NULL. Any thread. */
unsigned rocade_port_latencies_sized(struct rocade_port *port,
	struct rocade_latency *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_latencies(struct rocade_port *port, struct rocade_latency *rows, unsigned n)
{
	return rocade_port_latencies_sized(port, rows, n, sizeof(*rows));
}

/*
 * Where the time of a slow request went. A measured request that has completed is kept for five minutes, unless four
 * slower ones of its type of QP, operation and engine are. Its time begins earlier than in the histograms: with the pass in
 * which the engine found it in its queue, or that ended the measured request before it. Times are in nanoseconds; the
 * first nine add up to took_ns.
 */
struct rocade_slow_request {
	const char *type; /* constants, as in struct rocade_latency */
	const char *operation;
	uint64_t
		queue_ns; /* behind earlier requests of its QP, or until it was its turn */
	uint64_t window_ns;    /* for room in the window of the peer */
	uint64_t rnr_ns;       /* until the peer had a receive (RNR) */
	uint64_t neighbour_ns; /* for the MAC address of the next hop */
	uint64_t port_ns;      /* while the port took no packets */
	uint64_t nak_ns;       /* until the peer had shown that packets were missing */
	/* until a timer had packets sent again: they were lost, or the answer was late */
	uint64_t timer_ns;
	uint64_t answer_ns; /* for the path and the peer */
	/* at the end, while the receive queue was not emptied, so that the answer may have been there already: no pass of
	 * the engine, or more packets than it takes. Time in which a thread slept that packets wake up is in answer_ns */
	uint64_t engine_ns;
	uint64_t took_ns;
	/* When the engine found the request, its pass before was this long ago: the request may have waited that long
	 * already, which took_ns does not have. 0: its post sent it. */
	uint64_t engine_before_ns;
	uint64_t age_ns; /* it completed this long ago */
	uint32_t qpn;
	uint32_t bytes; /* of the message */
	/* of its QP meanwhile: request packets that were sent again, timers that expired, NAKs and what else showed a
	 * loss, and RNR NAKs */
	uint32_t resent, timers, naks, rnr_naks;
};

/* Fills up to n rows: by engine, type and operation, the slowest first. Returns how many there are, which other engines
 * change meanwhile. rows may be NULL. Any thread; no engine waits. */
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
