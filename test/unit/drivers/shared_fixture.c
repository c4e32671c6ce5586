/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_eal.h>
#include <rte_flow.h>

#include "base/base_log.h"
#include "case.h"
#include "shared_fixture.h"

#define FRAME_BYTES 60

char warning[200];
struct rte_mempool *pool;
uint16_t app_port;
struct flow_rule rules[8];
bool flows_fail;
bool input_queued;

static void
keep_warning(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARN)
		snprintf(warning, sizeof(warning), "%s", line);
}

static void
app_port_start(void)
{
	const struct rte_eth_conf eth = {0};

	assert_int_equal(rte_eth_dev_get_port_by_name("net_ring0", &app_port), 0);
	assert_int_equal(
		rte_eth_dev_configure(app_port, APP_QUEUES, APP_QUEUES, &eth), 0);
	for (uint16_t i = 0; i < APP_QUEUES; i++) {
		assert_int_equal(
			rte_eth_rx_queue_setup(app_port, i, 256, 0, NULL, pool), 0);
		assert_int_equal(rte_eth_tx_queue_setup(app_port, i, 256, 0, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(app_port), 0);
}

int
shared_start(void **state)
{
	char *args[] = {program_invocation_name, "--no-huge", "--no-pci", "--no-shconf",
		"--no-telemetry", "-m", "128", "-l", "0", "--log-level=error",
		"--vdev=net_ring0", "--vdev=net_null0"};

	if (rte_eal_init(RTE_DIM(args), args) < 0) {
		fprintf(stderr, "EAL does not start\n");
		return -1;
	}
	log_set_sink(keep_warning, NULL);
	pool = rte_pktmbuf_pool_create("app", 4095, 0, 0, 2176, 0);
	assert_non_null(pool);
	app_port_start();
	return 0;
}

int
shared_end(void **state)
{
	return rte_eal_cleanup();
}

struct shared_open_conf
shared_defaults(void)
{
	return (struct shared_open_conf){
		.port_id = app_port,
		.queues = 1,
		.mtu = 1500,
		.shared = {.size = sizeof(struct rocade_shared_conf)},
	};
}

struct port
shared_opened(const struct shared_open_conf *conf)
{
	struct net_conf net = {.addr_count = 1};
	struct port port = {0};
	char err[300] = "";

	if (shared_open(conf, &port, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	memcpy(net.mac, port.mac, 6);
	assert_int_equal(gid_parse("192.0.2.1", net.addr[0].gid, NULL), 0);
	port.ops->set_addresses(port.drv, &net);
	return port;
}

struct shared_queue *
queue_of(const struct port *port, unsigned index)
{
	struct shared_queue *q = shared_queue_of(port, index);

	assert_non_null(q);
	return q;
}

uint16_t
frames_input(struct shared_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	return shared_input(q, frames, n, &input_queued);
}

struct rte_mbuf *
frame_of(enum frame_kind kind, unsigned number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *f;

	assert_non_null(m);
	f = (uint8_t *)rte_pktmbuf_append(m, FRAME_BYTES);
	memset(f, 0, FRAME_BYTES);
	f[12] = 0x08;
	f[FRAME_BYTES - 1] = (uint8_t)number;
	if (kind == KIND_ARP_FOR_ALL) { /* 192.0.2.9 announces itself */
		f[13] = 0x06;
		f[21] = 1;
		memcpy(f + 28, (const uint8_t[]){192, 0, 2, 9}, 4);
		memcpy(f + 38, (const uint8_t[]){192, 0, 2, 9}, 4);
		return m;
	}
	f[14] = 0x45;
	f[23] = kind == KIND_TCP ? 6 : 17;
	memcpy(f + 30, (const uint8_t[]){192, 0, 2, 1}, 4);
	f[36] = 0x12; /* 4791 */
	f[37] = 0xB7;
	if (kind == KIND_GROUP) { /* 239.1.2.3 */
		memcpy(f, (const uint8_t[]){0x01, 0x00, 0x5E, 1, 2, 3}, 6);
		memcpy(f + 30, (const uint8_t[]){239, 1, 2, 3}, 4);
	}
	return m;
}

unsigned
number_of(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod_offset(m, const uint8_t *, FRAME_BYTES - 1);
}

unsigned
pool_used(void)
{
	return rte_mempool_in_use_count(pool);
}

/* ---- rte_flow ---- */

unsigned
rules_in_use(void)
{
	unsigned used = 0;

	for (unsigned i = 0; i < RTE_DIM(rules); i++)
		used += rules[i].used;
	return used;
}

static void
pattern_read(const struct rte_flow_item *item, struct flow_rule *rule)
{
	assert_int_equal(item[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	rule->ipv6 = item[1].type == RTE_FLOW_ITEM_TYPE_IPV6;
	if (rule->ipv6) {
		const struct rte_flow_item_ipv6 *spec = item[1].spec,
						*mask = item[1].mask;

		memcpy(rule->addr, &spec->hdr.dst_addr, 16);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(((const uint8_t *)&mask->hdr.dst_addr)[i], 0xFF);
	} else {
		const struct rte_flow_item_ipv4 *spec = item[1].spec,
						*mask = item[1].mask;

		assert_int_equal(item[1].type, RTE_FLOW_ITEM_TYPE_IPV4);
		memcpy(rule->addr, &spec->hdr.dst_addr, 4);
		assert_int_equal(mask->hdr.dst_addr, UINT32_MAX);
		assert_int_equal(mask->hdr.src_addr, 0);
	}
	assert_int_equal(item[2].type, RTE_FLOW_ITEM_TYPE_UDP);
	rule->port = rte_be_to_cpu_16(
		((const struct rte_flow_item_udp *)item[2].spec)->hdr.dst_port);
	assert_int_equal(((const struct rte_flow_item_udp *)item[2].mask)->hdr.dst_port,
		UINT16_MAX);
	assert_int_equal(item[3].type, RTE_FLOW_ITEM_TYPE_END);
}

static void
action_read(const struct rte_flow_action *action, struct flow_rule *rule)
{
	if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
		rule->queue = ((const struct rte_flow_action_queue *)action->conf)->index;
		rule->queues = 1;
	} else {
		const struct rte_flow_action_rss *rss = action->conf;

		assert_int_equal(action->type, RTE_FLOW_ACTION_TYPE_RSS);
		assert_true((rss->types & RTE_ETH_RSS_UDP) != 0);
		rule->queue = rss->queue[0];
		rule->queues = (uint16_t)rss->queue_num;
		for (unsigned i = 0; i < rss->queue_num; i++)
			assert_int_equal(rss->queue[i], rule->queue + i);
	}
	assert_int_equal(action[1].type, RTE_FLOW_ACTION_TYPE_END);
}

struct rte_flow *
rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct flow_rule *rule = rules;

	assert_int_equal(port_id, app_port);
	assert_true(attr->ingress);
	if (flows_fail) {
		error->message = "not here";
		return NULL;
	}
	while (rule->used)
		rule++;
	*rule = (struct flow_rule){.used = true};
	pattern_read(pattern, rule);
	action_read(actions, rule);
	return (struct rte_flow *)rule;
}

int
rte_flow_destroy(uint16_t port_id, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct flow_rule *rule = (struct flow_rule *)flow;

	(void)error;
	assert_int_equal(port_id, app_port);
	assert_true(rule->used);
	rule->used = false;
	return 0;
}
