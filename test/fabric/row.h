/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios, a row each, and what is measured in them. */
#ifndef ROCADE_FABRIC_ROW_H
#define ROCADE_FABRIC_ROW_H

#include "fabric.h"

enum load {
	LOAD_INCAST, /* n hosts to one, endlessly */
	LOAD_BURST,  /* n hosts to one, one message each, at once */
	LOAD_VICTIM, /* as INCAST, and a flow of the first sender to an idle host */
	LOAD_DUPLEX, /* as INCAST, and the first sender reads from the destination */
	LOAD_STAIRS, /* as INCAST; flows start one after the other, and stop likewise */
	LOAD_CHAIN,  /* a flow over n trunks, and on each trunk one of its own */
	LOAD_MIX,    /* messages of many lengths between all hosts, at random times */
	LOAD_PAIRS,  /* n flows, from hosts of one half to those of the other half */
	LOAD_FANOUT, /* a host to n others, endlessly */
	LOAD_ALL,    /* each of n hosts to all others, endlessly */
};

struct row {
	const char *name;
	enum load load;
	unsigned n;
	uint32_t bytes;       /* of a message: LOAD_BURST */
	double part;          /* LOAD_MIX: of the links' rate */
	unsigned warm_us, us; /* measured: `us` microseconds from warm_us on */
	/* Differences from the standard fabric. */
	unsigned gbit_per_s;
	unsigned mbit_per_s; /* in place of gbit_per_s; 0: that one */
	unsigned delay_ns;   /* of each link */
	unsigned port_kb;
	unsigned shared_kb;
	unsigned loss; /* frames per million */
	unsigned turn_min_ns, turn_max_ns, stall_us, stall_every_us; /* 0: 1 ms */
	unsigned spines, dead_spines, leaves, trunk_gbit_per_s;
	unsigned police_mbit_per_s, police_kb;
	unsigned nic_frames;
	bool ecn;
	unsigned qps; /* flows of each sender; 0: one */
	/* Endless flows: bytes of each message, and how many are posted at once; 0: FLOW_MSG,
	 * FLOW_DEPTH. */
	uint32_t message, depth;
	uint32_t mtu;   /* path MTU; 0: FLOW_MTU */
	unsigned hello; /* messages of 8 bytes, one after the other, at first */
	bool read;      /* the destinations read, instead of the sources writing */
	/* LOAD_INCAST: senders without congestion control, whatever the others have. share
	 * is then what those others get together. */
	unsigned greedy;
	bool no_hold;   /* responders drop what comes behind a missing packet */
	bool no_sack;   /* hosts have not agreed on selective acknowledgements */
	unsigned paths; /* of each QP; 0: one */
	/* The hosts are programs behind a daemon: losses and CNPs are the only signals of
	 * congestion control, without which the row does not run. TCP is beside it. */
	bool client;
	/* Threads that take turns on the two cores of each host; 0: the engine has a core. */
	unsigned threads;
};

extern const struct row rows[];
extern const unsigned row_count;

/* The measured values: name, unit, decimals, text. A value that a scenario does not have
 * is NAN. */
#define METRICS(X)                                                                       \
	X(goodput, "%", 1, "of what the bottleneck can carry")                           \
	X(jain, "", 3, "fairness between the flows (Jain's index)")                      \
	X(loss, "%", 2, "packets with payload that the network dropped")                 \
	X(resends, "%", 2, "packets with payload that had been sent before")             \
	X(queue_p50, "us", 1, "length of the bottleneck's queue, as time")               \
	X(queue_p99, "us", 1, "")                                                        \
	X(fct_p50, "us", 0, "flow completion time: from post to CQE")                    \
	X(fct_p99, "us", 0, "")                                                          \
	X(fct_max, "us", 0, "")                                                          \
	X(small_p50, "x", 1, "slowdown of messages up to 32 KiB: over an idle network")  \
	X(small_p99, "x", 1, "")                                                         \
	X(big_p50, "x", 1, "slowdown of messages of 1 MB and more")                      \
	X(big_p99, "x", 1, "")                                                           \
	X(share, "%", 1, "of its link; chain and greedy senders: the part of fair")      \
	X(settle, "us", 0, "until Jain's index is 0.95 after a flow joined or left")     \
	X(undone, "", 0, "messages that were not complete at the end")                   \
	X(timeouts, "", 0, "ACK timeouts")                                               \
	X(probes, "", 0, "tail-loss probes")                                             \
	X(marks, "%", 2, "packets with payload that a switch marked (CE)")               \
	X(cnps, "", 0, "congestion notifications that arrived")

enum metric {
#define METRIC_ENUM(name, unit, decimals, text) METRIC_##name,
	METRICS(METRIC_ENUM)
#undef METRIC_ENUM
		METRIC_COUNT
};

struct result {
	double value[METRIC_COUNT];
	double virtual_s, cpu_s;
	uint64_t packets; /* with payload, sent */
	double least;     /* the part of its link that the flow with the least gets */
};

struct plot;

/* Runs the scenario. plot: NULL, or receives the curves. scale: of its times. */
/* cc: the congestion control of the hosts. */
void row_run(const struct row *row, const struct cc_conf *cc, uint64_t seed, double scale,
	struct plot *plot, struct result *result);

struct tcp_result;

/* What TCP reaches in its place (tcp.h). */
void row_reference(
	const struct row *row, uint64_t seed, double scale, struct tcp_result *result);

#endif
