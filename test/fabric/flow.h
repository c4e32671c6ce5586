/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: a connection of its own between two hosts, over which bytes go from one of them
 * to the other, a number of them or endlessly. The source writes them (RDMA WRITE), or the
 * destination reads them (RDMA READ). */
#ifndef ROCADE_FABRIC_FLOW_H
#define ROCADE_FABRIC_FLOW_H

#include "fabric.h"

struct flow_conf {
	unsigned src, dst;
	uint64_t start; /* picoseconds */
	uint64_t stop;  /* 0: none. The connection ends at once. */
	uint64_t bytes; /* at most HOST_MEM_BYTES; 0: endless */
	/* Endless: bytes of a message, and how many are posted; 0: FLOW_MSG, FLOW_DEPTH. */
	uint32_t message, depth;
	uint32_t mtu; /* path MTU; 0: FLOW_MTU */
	uint8_t tclass;
	bool read;      /* RDMA READ */
	unsigned hello; /* messages of HELLO_BYTES before, one after the other */
};

#define HELLO_BYTES 8
#define FLOW_MTU 4096
#define FLOW_MSG (256u << 10)
#define FLOW_DEPTH 8
/* Time on the wire of a packet in the middle of a message. */
#define FLOW_PACKET_BYTES(mtu) ((mtu) + 58 + FRAME_L1_BYTES)

struct flow {
	struct flow_conf conf;
	struct host *from, *to;
	struct qp sender, receiver;
	/* One of these: posts the requests. */
	struct host *poster;
	struct qp *requester;
	struct event start, stop;
	bool stopped;
	uint64_t finished; /* time of the sender's last CQE; 0: not yet */
	uint64_t packets;  /* that arrived in order, see flow_packets() */
	uint32_t epsn;
	unsigned hello; /* still to be sent */
};

/* Connects the hosts. The flow starts by itself. */
void flow_init(struct flow *flow, struct fabric *f, const struct flow_conf *conf);
void flow_fini(struct flow *flow);

/* Returns how many packets the destination has accepted. To be called at least every 2^23
 * packets. */
uint64_t flow_packets(struct flow *flow);

static inline bool
flow_is_active(const struct flow *flow, uint64_t now)
{
	return now >= flow->conf.start && !flow->stopped && flow->finished == 0;
}

#endif
