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

#ifdef __cplusplus
}
#endif

#endif
