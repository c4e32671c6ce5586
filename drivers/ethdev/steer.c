/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <string.h>

#include "base/base_log.h"
#include "ethdev/steer.h"
#include "wire/hdr.h"

#define PATTERN_ITEMS 4
#define QUEUES_MAX 16

/* UDP datagrams to port 4791 of an address. */
struct pattern {
	struct rte_flow_item items[PATTERN_ITEMS];
	struct rte_flow_item_ipv4 ipv4, ipv4_mask;
	struct rte_flow_item_ipv6 ipv6, ipv6_mask;
	struct rte_flow_item_udp udp, udp_mask;
};

static void
pattern_fill(struct pattern *p, const uint8_t gid[16])
{
	memset(p, 0, sizeof(*p));
	p->items[0].type = RTE_FLOW_ITEM_TYPE_ETH;
	if (gid_is_ipv4(gid)) {
		memcpy(&p->ipv4.hdr.dst_addr, gid + 12, 4);
		p->ipv4_mask.hdr.dst_addr = UINT32_MAX;
		p->items[1] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_IPV4,
			.spec = &p->ipv4,
			.mask = &p->ipv4_mask};
	} else {
		memcpy(&p->ipv6.hdr.dst_addr, gid, 16);
		memset(&p->ipv6_mask.hdr.dst_addr, 0xFF, 16);
		p->items[1] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_IPV6,
			.spec = &p->ipv6,
			.mask = &p->ipv6_mask};
	}
	p->udp.hdr.dst_port = rte_cpu_to_be_16(ROCE_UDP_PORT);
	p->udp_mask.hdr.dst_port = UINT16_MAX;
	p->items[2] = (struct rte_flow_item){
		.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &p->udp, .mask = &p->udp_mask};
	p->items[3].type = RTE_FLOW_ITEM_TYPE_END;
}

/* To one queue, or to all of them by the hash of addresses and UDP ports. */
static struct rte_flow *
rule_create(const struct steer *s, const struct pattern *p, struct rte_flow_error *error)
{
	struct rte_flow_attr attr = {.ingress = 1};
	struct rte_flow_action_queue one = {.index = s->first_queue};
	uint16_t queues[QUEUES_MAX];
	struct rte_flow_action_rss all = {
		.types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP,
		.queue_num = s->queues,
		.queue = queues,
	};
	struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &one},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};

	if (s->queues > 1) {
		assert(s->queues <= QUEUES_MAX);
		for (uint16_t i = 0; i < s->queues; i++)
			queues[i] = (uint16_t)(s->first_queue + i);
		actions[0] = (struct rte_flow_action){
			.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &all};
	}
	return rte_flow_create(s->port_id, &attr, p->items, actions, error);
}

void
steer_set(struct steer *s, const struct net_conf *conf)
{
	struct rte_flow_error error = {0};
	unsigned rejected = 0;

	steer_clear(s);
	for (unsigned i = 0; i < conf->addr_count; i++) {
		struct rte_flow *rule;
		struct pattern p;

		pattern_fill(&p, conf->addr[i].gid);
		rule = rule_create(s, &p, &error);
		if (rule != NULL)
			s->rules[s->rule_count++] = rule;
		rejected += rule == NULL;
	}
	if (rejected != 0)
		log_warn(
			"ethdev %u rejects %u of %u flow rules for UDP port 4791 (%s): the "
			"application has to steer these frames, or to pass them to "
			"rocade_engine_input()",
			s->port_id, rejected, (unsigned)conf->addr_count,
			error.message != NULL ? error.message : "no reason given");
}

void
steer_clear(struct steer *s)
{
	struct rte_flow_error error;

	while (s->rule_count != 0)
		(void)rte_flow_destroy(s->port_id, s->rules[--s->rule_count], &error);
}
