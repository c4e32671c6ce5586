/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Effects on the request packets that QPs send: asks librocade-faults.so, by a wrapper of the port's queue. The same
 * wrapper takes the link down. */
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "port/impair.h"
#include "qp/request_fault.h"
#include "verbs/fault_hooks.h"
#include "verbs/objects.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/psn.h"
#include "wire/wire_gsi.h"

#define OVERTAKE 3 /* packets that a delayed one waits for */

static_assert(
	FAULT_WIRE_PSNS >= PSN_BITS, "packets under way have different PSNs modulo it");

/* Set before the first queue is wrapped, and the same each time: a process has one such library. */
static fault_judge_fn *judge;

/* Returns the BTH of a frame that a QP has built, or NULL. */
static const struct bth *
bth_of(const struct pkt *pkt)
{
	const uint8_t *ip = pkt->data + sizeof(struct rte_ether_hdr);
	uint32_t ether_type = (uint32_t)pkt->data[12] << 8 | pkt->data[13];

	if (PKT_TX_QPN(pkt) <= GSI_QPN)
		return NULL;
	if (ether_type == RTE_ETHER_TYPE_IPV4)
		return (const struct bth *)(ip + sizeof(struct rte_ipv4_hdr) +
					    sizeof(struct rte_udp_hdr));
	if (ether_type == RTE_ETHER_TYPE_IPV6)
		return (const struct bth *)(ip + sizeof(struct rte_ipv6_hdr) +
					    sizeof(struct rte_udp_hdr));
	return NULL;
}

static bool
carries_request(const struct bth *bth)
{
	unsigned kind = op_rows[bth->opcode].kind;

	return kind >= OP_SEND && kind <= OP_ATOMIC_WRITE;
}

static void
wire_choose(void *arg, const struct pkt *pkt, struct impair_effect *effect)
{
	fault_judge_fn *ask = __atomic_load_n(&judge, __ATOMIC_RELAXED);
	const struct dev *dev = arg;
	const struct bth *bth = bth_of(pkt);
	struct request_packet packet;
	const struct qp *qp;
	uint32_t psn;

	if (bth == NULL || !carries_request(bth))
		return;
	psn = be24_get(bth->psn);
	qp = qp_table_get(&dev->qps, PKT_TX_QPN(pkt));
	if (qp == NULL || !request_packet_find(qp, psn, &packet))
		return;
	/* How many requests a READ is divided into depends on the state of the path, and one that asks again begins where
	 * the answers have stopped. The first packet of a READ is the same in each run. */
	if (op_rows[bth->opcode].kind == OP_READ && packet.packet != 0)
		return;
	switch (ask(qp->events.object, packet.idx, packet.packet, psn)) {
	case FAULT_WIRE_DROP:
		effect->lose = true;
		break;
	case FAULT_WIRE_DUPLICATE:
		effect->duplicate = true;
		break;
	case FAULT_WIRE_DELAY:
		effect->hold = true;
		effect->behind = OVERTAKE;
		break;
	default:
		break;
	}
}

/* Control path. */

int
fault_wire_watch(struct ibv_context *context, fault_judge_fn *how)
{
	struct verbs_ctx *ctx = to_ctx(context);

	__atomic_store_n(&judge, how, __ATOMIC_RELAXED);
	/* A port has one wrapper, for all of its contexts. It lasts as long as the port. */
	return port_impair_choose(ctx->port, wire_choose, ctx->dev);
}

int
fault_link_watch(struct ibv_context *context)
{
	return port_impair_choose(to_ctx(context)->port, NULL, NULL);
}
