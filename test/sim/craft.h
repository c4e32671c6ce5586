/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that nobody should send. */
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
	struct buf zone; /* all that it may touch */
	struct ibv_mr *mr;
	uint32_t sends, receives; /* posted and not completed */
};

struct rogue {
	struct link_port *port;
	struct net *net;
	union ibv_gid gid[2]; /* IPv4, IPv6 */
	unsigned victims;
	struct victim victim[ROGUE_VICTIMS];
	/* The last READ that somebody asked of it. */
	uint32_t read_psn, read_len;
};

extern struct rogue rogue;

void
craft_send(struct victim *v, unsigned n);
/* A RoCEv2 packet has come. */
void
craft_seen(const uint8_t *data, uint32_t len);

#endif
