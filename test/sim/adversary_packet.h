/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the adversary's packets, most of which break a rule. */
#ifndef ROCADE_SIM_ADVERSARY_PACKET_H
#define ROCADE_SIM_ADVERSARY_PACKET_H

#include "port/net.h"

#include "end.h"

#define ADVERSARY_PORT (LINK_PORTS - 1)
#define ADVERSARY_VICTIMS 3
#define ADVERSARY_QPN 0xABCDE
#define ADVERSARY_QKEY 0x22220000u

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

struct adversary {
	struct link_port *port;
	struct net *net;
	union ibv_gid gid[2]; /* IPv4, IPv6 */
	unsigned victims;
	struct victim victim[ADVERSARY_VICTIMS];
	/* The last READ that a victim sent to the adversary. */
	uint32_t read_psn, read_len;
};

extern struct adversary adversary;

void adversary_send(struct victim *v, unsigned n);
/* Records the fields of a received RoCEv2 packet. */
void adversary_rx_roce(const uint8_t *data, uint32_t len);

#endif
