/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts, and the switches between them. */
#ifndef ROCADE_FABRIC_FABRIC_H
#define ROCADE_FABRIC_FABRIC_H

#include "host.h"
#include "switch.h"

enum fabric_shape {
	SHAPE_STAR,  /* all hosts at one switch */
	SHAPE_CLOS,  /* leaves with an equal number of hosts, each linked to all spines */
	SHAPE_CHAIN, /* switches in a row, with an equal number of hosts each */
};

struct fabric_conf {
	enum fabric_shape shape;
	unsigned hosts;
	unsigned leaves;            /* SHAPE_CHAIN: switches */
	unsigned spines;            /* SHAPE_CLOS */
	unsigned dead_spines;       /* of them: whose links lose everything */
	uint64_t link_ps_per_byte;  /* of links to hosts */
	uint64_t trunk_ps_per_byte; /* of links between switches */
	uint64_t delay;             /* of each link, in picoseconds */
	uint64_t port_bytes;        /* limit of each queue of a switch; 0: none */
	uint64_t shared_bytes;      /* packet memory of each switch; 0: not limited */
	double alpha;
	struct red red;
	uint32_t loss; /* frames lost at random, per million */
	unsigned police_mbit_per_s;
	uint32_t police_burst;
	uint32_t nic_frames; /* transmit ring; 0: NIC_TX_RING */
	struct turns turns;
	uint32_t max_qp; /* of each host */
	struct cc_conf cc;
	unsigned greedy; /* hosts 1 to greedy are without congestion control */
	bool no_hold;    /* responders drop what comes behind a missing packet */
	bool no_sack;    /* hosts have not agreed on selective acknowledgements */
	unsigned paths;  /* of each QP; 0: one */
};

struct fabric {
	struct fabric_conf conf;
	struct host *hosts;
	struct sw *switches; /* leaves or the chain, then spines */
	unsigned switch_count;
};

void fabric_init(struct fabric *f, const struct fabric_conf *conf);
void fabric_fini(struct fabric *f);

/* The queue of the last switch to the host. */
struct outq *fabric_queue_to(struct fabric *f, unsigned host);
/* SHAPE_CHAIN: the queue from switch n to switch n + 1; SHAPE_CLOS: from leaf n to the
 * first spine. */
struct outq *fabric_queue_right(struct fabric *f, unsigned n);

/* Frames with payload: given to queues of switches, lost there, marked. */
struct fabric_count {
	uint64_t offered, lost, marked;
};
struct fabric_count fabric_count(const struct fabric *f);

static inline uint64_t
ps_per_byte(unsigned gbit_per_s)
{
	return 8000 / gbit_per_s;
}

#endif
