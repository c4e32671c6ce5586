/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the adversary's packets, most of which break a rule. */
#ifndef ROCADE_SIM_CRAFT_H
#define ROCADE_SIM_CRAFT_H

#include "port/neigh.h"

#include "end.h"

#define ROGUE_PORT (LINK_PORTS - 1)
#define ROGUE_VICTIMS 3
#define ROGUE_QPN 0xABCDE
#define ROGUE_QKEY 0x22220000u

struct victim {
	struct host *host;
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	bool ipv6;
	unsigned pd;
	struct cq_model *cq;
	struct recv_model *srq;
	struct ibv_qp *qp;
	struct buf zone; /* the only memory that the adversary may access */
	struct ibv_mr *mr;
	uint32_t sends, receives; /* posted and not completed */
};

struct rogue {
	struct link_port *port;
	struct net *net;
	union ibv_gid gid[2]; /* IPv4, IPv6 */
	unsigned victims;
	struct victim victim[ROGUE_VICTIMS];
	/* The last READ that a victim sent to the adversary. */
	uint32_t read_psn, read_len;
};

extern struct rogue rogue;

void
craft_send(struct victim *v, unsigned n);
/* Records the fields of a received RoCEv2 packet. */
void
craft_seen(const uint8_t *data, uint32_t len);

#endif
