/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of scenarios. Where a row says nothing: links of 100 Gb/s and 2 us (a round
 * trip over one switch: 8.5 us), queues of at most 1 MB, tail drop, hosts with turns of 1
 * to 3 us. */
#include "row.h"

#define LONG .warm_us = 5000, .us = 5000

#define CLIENT .client = true, .mtu = 1024, .port_kb = 500
#define CLIENT_1G CLIENT, .gbit_per_s = 1, .warm_us = 60000, .us = 240000
#define CLIENT_10G CLIENT, .gbit_per_s = 10, .warm_us = 20000, .us = 60000
#define CLIENT_25G CLIENT, .gbit_per_s = 25, .warm_us = 20000, .us = 30000
#define CLIENT_4K                                                                        \
	.client = true, .mtu = 4096, .port_kb = 500, .gbit_per_s = 1, .delay_ns = 11950, \
	.hello = 20, .warm_us = 60000, .us = 240000
#define RTT_50US .delay_ns = 11950
#define RTT_200US .delay_ns = 49450
#define RTT_1MS .delay_ns = 249450

const struct row rows[] = {
	/* I: incast, long flows */
	{"I-2", LOAD_INCAST, 2, LONG},
	{"I-8", LOAD_INCAST, 8, LONG},
	{"I-32", LOAD_INCAST, 32, LONG},
	{"I-100", LOAD_INCAST, 100, LONG},
	{"I-255", LOAD_INCAST, 255, LONG},
	{"I-8-shared", LOAD_INCAST, 8, LONG, .shared_kb = 2000},
	{"I-8-ecn", LOAD_INCAST, 8, LONG, .ecn = true},
	/* many connections of each host; READ instead of WRITE */
	{"I-8x16", LOAD_INCAST, 8, LONG, .qps = 16},
	/* a queue that is longer than most delay targets */
	{"I-32-25G", LOAD_INCAST, 32, .warm_us = 20000, .us = 30000, .gbit_per_s = 25},
	/* round trips that grow a hundredfold when the load begins */
	{"I-32-10G-warm", LOAD_INCAST, 32, .hello = 20, .warm_us = 20000, .us = 30000,
		.gbit_per_s = 10},
	/* a queue that is shorter than the delay target; one that all hosts together fill */
	{"I-32-200K", LOAD_INCAST, 32, LONG, .port_kb = 200},
	{"I-100-10G", LOAD_INCAST, 100, .warm_us = 20000, .us = 30000, .gbit_per_s = 10},
	{"I-8-read", LOAD_INCAST, 8, LONG, .read = true},
	{"I-32-read", LOAD_INCAST, 32, LONG, .read = true},
	{"I-100-read", LOAD_INCAST, 100, LONG, .read = true},
	/* B: a burst of messages at once, over fresh QPs */
	{"B-8x256K", LOAD_BURST, 8, 256 << 10, .us = 400000},
	{"B-32x256K", LOAD_BURST, 32, 256 << 10, .us = 400000},
	{"B-100x256K", LOAD_BURST, 100, 256 << 10, .us = 400000},
	{"B-100x32K", LOAD_BURST, 100, 32 << 10, .us = 400000},
	{"B-32x256K-read", LOAD_BURST, 32, 256 << 10, .us = 400000, .read = true},
	{"B-100x32K-read", LOAD_BURST, 100, 32 << 10, .us = 400000, .read = true},
	/* O: one host to many */
	{"O-32", LOAD_FANOUT, 32, LONG},
	/* D: a host reads from the one that it writes to */
	{"D-1", LOAD_DUPLEX, 1, LONG},
	{"D-8", LOAD_DUPLEX, 8, LONG},
	/* V: a flow beside an incast; S: flows join and leave; P: three bottlenecks */
	{"V-7", LOAD_VICTIM, 7, LONG},
	{"S-8", LOAD_STAIRS, 8, .us = 16000},
	{"P-3", LOAD_CHAIN, 3, LONG, .leaves = 4, .delay_ns = 1000},
	/* X: half of the senders are without congestion control */
	{"X-8", LOAD_INCAST, 8, LONG, .greedy = 4},
	/* W: peers that hold no packets behind a missing one, as the kernel's driver */
	{"W-8", LOAD_INCAST, 8, LONG, .no_hold = true},
	{"W-32", LOAD_INCAST, 32, LONG, .no_hold = true},
	{"W-1%", LOAD_INCAST, 1, LONG, .loss = 10000, .no_hold = true},
	/* N: nothing else in the network: 8 connections of short messages, fast links */
	{"N-64B", LOAD_INCAST, 1, .warm_us = 500, .us = 1000, .qps = 8, .message = 64,
		.depth = 128},
	{"N-1K", LOAD_INCAST, 1, .warm_us = 1000, .us = 2000, .qps = 8, .message = 1024,
		.depth = 128},
	{"N-400G", LOAD_INCAST, 1, .warm_us = 1000, .us = 2000, .qps = 4,
		.gbit_per_s = 400},
	/* the delay target is less than a packet takes on two links */
	{"N-1G", LOAD_INCAST, 1, .warm_us = 20000, .us = 50000, .gbit_per_s = 1},
	/* M: mixed load */
	{"M-0.3", LOAD_MIX, 16, .part = 0.3, .us = 5000},
	{"M-0.6", LOAD_MIX, 16, .part = 0.6, .us = 5000},
	{"M-0.6-ring32", LOAD_MIX, 16, .part = 0.6, .us = 5000, .nic_frames = 32},
	{"M-0.8", LOAD_MIX, 16, .part = 0.8, .us = 5000},
	{"M-0.6-read", LOAD_MIX, 16, .part = 0.6, .us = 5000, .read = true},
	/* R: random loss, one flow */
	{"R-0", LOAD_INCAST, 1, LONG},
	{"R-0.01%", LOAD_INCAST, 1, LONG, .loss = 100},
	{"R-0.1%", LOAD_INCAST, 1, LONG, .loss = 1000},
	{"R-1%", LOAD_INCAST, 1, LONG, .loss = 10000},
	{"R-5%", LOAD_INCAST, 1, .warm_us = 5000, .us = 50000, .loss = 50000},
	/* peers that hold packets but send no selective acknowledgements */
	{"R-1%-nosack", LOAD_INCAST, 1, LONG, .loss = 10000, .no_sack = true},
	{"R-5%-nosack", LOAD_INCAST, 1, .warm_us = 5000, .us = 50000, .loss = 50000,
		.no_sack = true},
	{"R-1%-read", LOAD_INCAST, 1, LONG, .read = true, .loss = 10000},
	{"R-5%-read", LOAD_INCAST, 1, .warm_us = 5000, .us = 50000, .read = true,
		.loss = 50000},
	/* several READs are under way at once */
	{"R-0.01%-read64K", LOAD_INCAST, 1, .warm_us = 5000, .us = 20000, .read = true,
		.message = 64 << 10, .loss = 100},
	{"R-1%-read64K", LOAD_INCAST, 1, .warm_us = 5000, .us = 20000, .read = true,
		.message = 64 << 10, .loss = 10000},
	{"R-0.01%-read64K-nosack", LOAD_INCAST, 1, .warm_us = 5000, .us = 20000,
		.read = true, .message = 64 << 10, .loss = 100, .no_sack = true},
	{"R-1%-40us", LOAD_INCAST, 1, LONG, .loss = 10000, .delay_ns = 10000},
	/* few frames between a loss and its resend wait in the host's own transmit ring */
	{"R-1%-ring32", LOAD_INCAST, 1, LONG, .loss = 10000, .nic_frames = 32},
	{"R-5%-40us", LOAD_INCAST, 1, LONG, .loss = 50000, .delay_ns = 10000},
	{"R-1%-40us-warm", LOAD_INCAST, 1, .hello = 20, LONG, .loss = 10000,
		.delay_ns = 10000},
	/* L: a round trip of 1 ms, longer than the first tail-loss timer. With congestion control
	 * nothing finds such a path until round trips are measured before the load. */
	{"L-1ms", LOAD_INCAST, 1, .warm_us = 10000, .us = 20000, .delay_ns = 250000},
	/* K: slow and stalled hosts */
	{"K-0", LOAD_INCAST, 8, LONG, .turn_min_ns = 50, .turn_max_ns = 100},
	{"K-5", LOAD_INCAST, 8, LONG, .turn_min_ns = 2500, .turn_max_ns = 7500},
	{"K-30-warm", LOAD_INCAST, 8, .hello = 20, LONG, .turn_min_ns = 15000,
		.turn_max_ns = 45000},
	{"K-30-read", LOAD_INCAST, 8, .hello = 20, LONG, .turn_min_ns = 15000,
		.turn_max_ns = 45000, .read = true},
	{"K-stall", LOAD_INCAST, 8, LONG, .stall_us = 100},
	{"K-stall-5ms", LOAD_INCAST, 1, .warm_us = 5000, .us = 100000, .stall_us = 5000,
		.stall_every_us = 25000},
	{"K-stall-1ms", LOAD_INCAST, 1, .warm_us = 5000, .us = 100000, .stall_us = 1000,
		.stall_every_us = 10000},
	/* T: round trips of 20 to 200 us. The delay target has to be found: by the small
	 * messages that the hosts exchange at first, or, cold, without them. */
	{"T-20", LOAD_INCAST, 1, .hello = 20, LONG, .delay_ns = 4900},
	{"T-40", LOAD_INCAST, 1, .hello = 20, LONG, .delay_ns = 9900},
	{"T-60", LOAD_INCAST, 1, .hello = 20, LONG, .delay_ns = 14900},
	{"T-100", LOAD_INCAST, 1, .hello = 20, LONG, .delay_ns = 24900},
	{"T-200", LOAD_INCAST, 1, .hello = 20, .warm_us = 10000, .us = 10000,
		.delay_ns = 49900},
	{"T-40-8", LOAD_INCAST, 8, .hello = 20, LONG, .delay_ns = 9900},
	{"T-40-read", LOAD_INCAST, 1, .hello = 20, LONG, .delay_ns = 9900, .read = true},
	{"T-60-32-read", LOAD_INCAST, 32, .hello = 20, LONG, .delay_ns = 14900,
		.read = true},
	{"T-60-32", LOAD_INCAST, 32, .hello = 20, LONG, .delay_ns = 14900},
	{"K-30-1", LOAD_INCAST, 1, .hello = 20, LONG, .turn_min_ns = 15000,
		.turn_max_ns = 45000},
	{"K-100", LOAD_INCAST, 8, .hello = 20, .warm_us = 20000, .us = 20000,
		.turn_min_ns = 50000, .turn_max_ns = 150000},
	{"K-500", LOAD_INCAST, 2, .hello = 20, .warm_us = 50000, .us = 50000,
		.turn_min_ns = 100000, .turn_max_ns = 900000},
	{"T-40-cold", LOAD_INCAST, 1, LONG, .delay_ns = 9900},
	{"T-40-8-cold", LOAD_INCAST, 8, LONG, .delay_ns = 9900},
	{"T-60-cold", LOAD_INCAST, 1, LONG, .delay_ns = 14900},
	{"T-100-cold", LOAD_INCAST, 1, LONG, .delay_ns = 24900},
	{"K-30", LOAD_INCAST, 8, LONG, .turn_min_ns = 15000, .turn_max_ns = 45000},
	{"K-500-cold", LOAD_INCAST, 2, .warm_us = 50000, .us = 50000,
		.turn_min_ns = 100000, .turn_max_ns = 900000},
	/* C: clouds: long round trips, a cap on each flow; E: equal-cost paths */
	{"C-16-warm", LOAD_INCAST, 16, .hello = 20, LONG, .gbit_per_s = 25,
		.delay_ns = 14700, .port_kb = 500},
	{"C-16-read", LOAD_INCAST, 16, .hello = 20, LONG, .gbit_per_s = 25,
		.delay_ns = 14700, .port_kb = 500, .read = true},
	{"C-16", LOAD_INCAST, 16, LONG, .gbit_per_s = 25, .delay_ns = 14700,
		.port_kb = 500},
	{"C-1", LOAD_INCAST, 1, LONG, .gbit_per_s = 25, .delay_ns = 14700,
		.port_kb = 500},
	{"C-cap", LOAD_PAIRS, 1, LONG, .gbit_per_s = 25, .police_mbit_per_s = 5000,
		.police_kb = 256},
	{"E-4", LOAD_PAIRS, 8, LONG, .leaves = 2, .spines = 4, .trunk_gbit_per_s = 200,
		.delay_ns = 1000},
	{"E-4-dead", LOAD_PAIRS, 8, LONG, .leaves = 2, .spines = 4, .dead_spines = 1,
		.trunk_gbit_per_s = 200, .delay_ns = 1000},
	/* the same, with QPs that spread their packets over several paths */
	{"C-cap-4paths", LOAD_PAIRS, 1, LONG, .gbit_per_s = 25, .police_mbit_per_s = 5000,
		.police_kb = 256, .paths = 4},
	{"E-4-4paths", LOAD_PAIRS, 8, LONG, .leaves = 2, .spines = 4,
		.trunk_gbit_per_s = 200, .delay_ns = 1000, .paths = 4},
	{"E-4-dead-4paths", LOAD_PAIRS, 8, LONG, .leaves = 2, .spines = 4,
		.dead_spines = 1, .trunk_gbit_per_s = 200, .delay_ns = 1000, .paths = 4},
	/* H: programs behind a daemon: path MTU 1024, and no delays. A round trip is that of an
	 * idle network, without the time on the wires. */
	{"H-1-1G-50us", LOAD_INCAST, 1, CLIENT_1G, RTT_50US},
	{"H-1-1G-200us", LOAD_INCAST, 1, CLIENT_1G, RTT_200US},
	{"H-1-1G-1ms", LOAD_INCAST, 1, CLIENT_1G, RTT_1MS},
	{"H-1-10G-50us", LOAD_INCAST, 1, CLIENT_10G, RTT_50US},
	{"H-1-10G-200us", LOAD_INCAST, 1, CLIENT_10G, RTT_200US},
	{"H-1-10G-1ms", LOAD_INCAST, 1, CLIENT_10G, RTT_1MS},
	{"H-1-25G-50us", LOAD_INCAST, 1, CLIENT_25G, RTT_50US},
	{"H-1-25G-200us", LOAD_INCAST, 1, CLIENT_25G, RTT_200US},
	{"H-1-25G-1ms", LOAD_INCAST, 1, CLIENT_25G, RTT_1MS},
	{"H-16-1G-50us", LOAD_INCAST, 16, CLIENT_1G, RTT_50US},
	{"H-16-1G-200us", LOAD_INCAST, 16, CLIENT_1G, RTT_200US},
	{"H-16-1G-1ms", LOAD_INCAST, 16, CLIENT_1G, RTT_1MS},
	{"H-16-10G-50us", LOAD_INCAST, 16, CLIENT_10G, RTT_50US},
	{"H-16-10G-200us", LOAD_INCAST, 16, CLIENT_10G, RTT_200US},
	{"H-16-10G-1ms", LOAD_INCAST, 16, CLIENT_10G, RTT_1MS},
	{"H-16-25G-50us", LOAD_INCAST, 16, CLIENT_25G, RTT_50US},
	{"H-16-25G-200us", LOAD_INCAST, 16, CLIENT_25G, RTT_200US},
	{"H-16-25G-1ms", LOAD_INCAST, 16, CLIENT_25G, RTT_1MS},
	/* a cap on each flow; a buffer that the ports of a switch share; other threads on the
	 * two cores of each host */
	{"H-1-cap", LOAD_INCAST, 1, CLIENT_10G, RTT_200US, .police_mbit_per_s = 2000,
		.police_kb = 100},
	{"H-16-10G-shared", LOAD_INCAST, 16, CLIENT_10G, RTT_200US, .shared_kb = 256},
	{"H-16-25G-shared", LOAD_INCAST, 16, CLIENT_25G, RTT_200US, .shared_kb = 256},
	{"H-1-10G-3threads", LOAD_INCAST, 1, CLIENT_10G, RTT_200US, .threads = 3},
	{"H-1-10G-8threads", LOAD_INCAST, 1, CLIENT_10G, RTT_200US, .threads = 8},
	{"H-16-10G-3threads", LOAD_INCAST, 16, CLIENT_10G, RTT_200US, .threads = 3},
	{"H-16-10G-8threads", LOAD_INCAST, 16, CLIENT_10G, RTT_200US, .threads = 8},
	/* the first requests are much shorter than later ones, so round trips become longer */
	{"H-1-1G-50us-warm", LOAD_INCAST, 1, CLIENT_4K},
	{"H-16-1G-50us-warm", LOAD_INCAST, 16, CLIENT_4K},
	/* 256 hosts in one process */
	{"M-256", LOAD_MIX, 256, .part = 0.3, .us = 2000, .leaves = 8, .spines = 8,
		.trunk_gbit_per_s = 400, .delay_ns = 1000},
};

const unsigned row_count = RTE_DIM(rows);
