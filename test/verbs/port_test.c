/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports, by <rocade/rocade.h>: opening, closing, names, addresses, neighbours,
 * counters. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/latencies.h>

#include "api_fixture.h"
#include "case.h"

static struct rocade_port_conf
port_conf(const char *addresses)
{
	return (struct rocade_port_conf){
		.size = sizeof(struct rocade_port_conf), .addresses = addresses};
}

/* Opening fails with a message that names the option, and leaves nothing open. */
static void
expect_open_refused(const struct rocade_port_conf *a, int err, const char *word)
{
	struct rocade_port_conf conf[2] = {*a, port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2] = {NULL, NULL};
	struct ibv_device **list;
	int n;

	assert_int_equal(rocade_open_loop(conf, ports), err);
	if (strstr(rocade_error(), word) == NULL)
		fail_msg("\"%s\" does not name %s", rocade_error(), word);
	assert_null(ports[0]);
	list = ibv_get_device_list(&n);
	for (int i = 0; i < n; i++)
		assert_null(strstr(ibv_get_device_name(list[i]), "rocade"));
	if (list != NULL)
		ibv_free_device_list(list);
}

static void
expect_cc_refused(struct rocade_cc_conf cc, const char *word)
{
	struct rocade_port_conf conf = port_conf("192.0.2.1/24");

	conf.cc = &cc;
	expect_open_refused(&conf, EINVAL, "cc: size: 0 is not"); /* no size */
	cc.size = sizeof(cc);
	expect_open_refused(&conf, EINVAL, word);
}

TEST(congestion_control_from_text)
{
	static const struct {
		const char *text;
		struct rocade_cc_conf cc;
	} rows[] = {{NULL, {.size = 0}}, {"off", {.algorithm = ROCADE_CC_OFF}},
		{"swift", {.size = 0}},
		{"swift,target=50,window=9,loss=3",
			{.target_us = 50, .window = 9, .loss_permille = 3}}};
	struct rocade_cc_conf cc;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(rocade_cc_parse(rows[i].text, &cc), 0);
		assert_int_equal(cc.size, sizeof(cc));
		assert_int_equal(cc.algorithm, rows[i].cc.algorithm);
		assert_int_equal(cc.target_us, rows[i].cc.target_us);
		assert_int_equal(cc.window, rows[i].cc.window);
		assert_int_equal(cc.loss_permille, rows[i].cc.loss_permille);
	}
	assert_int_equal(rocade_cc_parse("swift,target=0", &cc), EINVAL);
	assert_non_null(strstr(rocade_error(), "swift,target=0: expected off"));
	assert_int_equal(cc.window, 9);
}

/* The structure reaches the windows of peers: at first they have what it says. */
TEST(congestion_control_of_a_port)
{
	static const struct {
		struct rocade_cc_conf cc;
		bool on;
		double window;
	} rows[] = {{{.size = sizeof(rows[0].cc), .window = 5}, true, 5},
		{{.size = sizeof(rows[0].cc)}, true, 8},
		{{.size = sizeof(rows[0].cc), .algorithm = ROCADE_CC_OFF}, false, 0}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verbs_pair_conf conf = {.srq_wr = 4, .cc = &rows[i].cc};
		struct rocade_peer peer;

		pair_open(&pair, &conf);
		assert_int_equal(rocade_port_peers(pair.a.port, &peer, 1), 1);
		assert_int_equal(peer.cc, rows[i].on);
		if (rows[i].on)
			assert_true(peer.send.cc_window == rows[i].window);
		pair_close(&pair);
	}
}

TEST(invalid_options_are_refused_by_name)
{
	struct rocade_port_conf c;

	c = port_conf("192.0.2.1/24");
	c.size = 4;
	expect_open_refused(&c, EINVAL, "size");
	c = port_conf(NULL);
	expect_open_refused(&c, EINVAL, "addresses");
	c = port_conf("192.0.2.1/24,nonsense");
	expect_open_refused(&c, EINVAL, "nonsense");
	c = port_conf("192.0.2.1/33");
	expect_open_refused(&c, EINVAL, "192.0.2.1/33");
	c = port_conf("224.0.0.1/24");
	expect_open_refused(&c, EINVAL, "address");
	c = port_conf("192.0.2.1/24");
	c.gateway4 = "2001:db8::1";
	expect_open_refused(&c, EINVAL, "gateway4");
	c = port_conf("192.0.2.1/24");
	c.mtu = 575;
	expect_open_refused(&c, EINVAL, "mtu");
	c.mtu = 9001;
	expect_open_refused(&c, EINVAL, "mtu");
	c = port_conf("192.0.2.1/24");
	c.vlan = 4095;
	expect_open_refused(&c, EINVAL, "vlan");
	c = port_conf("192.0.2.1/24");
	c.engines = 17;
	expect_open_refused(&c, EINVAL, "engines");
	c.engines = 2; /* the other end has one engine */
	expect_open_refused(&c, EINVAL, "engines");
	c = port_conf("192.0.2.1/24");
	c.qpn_base = 1;
	expect_open_refused(&c, EINVAL, "qpn_base");
	c.qpn_base = 0xFFFFFF;
	expect_open_refused(&c, EINVAL, "qpn_base");
	c.qpn_base = 0xFFFFF0; /* 65536 QPNs do not fit from here on */
	expect_open_refused(&c, EINVAL, "qpn_base");
	c = port_conf("192.0.2.1/24");
	c.max_qp = 131073;
	expect_open_refused(&c, EINVAL, "max_qp");
	c = port_conf("192.0.2.1/24");
	c.max_peers = 5000;
	expect_open_refused(
		&c, EINVAL, "max_peers: 5000 is not a power of two in 1024..65536");
	c = port_conf("192.0.2.1/24");
	c.paths = 9;
	expect_open_refused(&c, EINVAL, "paths: 9 is not in 1..8");
	expect_cc_refused((struct rocade_cc_conf){.algorithm = 2}, "cc: algorithm: no");
	expect_cc_refused((struct rocade_cc_conf){.target_us = 1001},
		"target_us: 1001 is not in 1..");
	expect_cc_refused((struct rocade_cc_conf){.window = 65536}, "cc: window: 65536");
	expect_cc_refused((struct rocade_cc_conf){.loss_permille = 1001},
		"cc: loss_permille: 1001");
	setenv("ROCADE_PATHS", "nine", 1);
	c.paths = 4;
	expect_open_refused(&c, EINVAL, "ROCADE_PATHS: nine: expected 1 to 8");
	unsetenv("ROCADE_PATHS");
	setenv("ROCADE_OFF", "tlp,probes", 1);
	expect_open_refused(&c, EINVAL, "ROCADE_OFF: invalid entry 'probes'");
	unsetenv("ROCADE_OFF");
	c = port_conf("192.0.2.1/24");
	c.name = "";
	expect_open_refused(&c, EINVAL, "name");
	c = port_conf("192.0.2.1/24");
	c.numa = 1;
	expect_open_refused(&c, EINVAL, "numa");
	c = port_conf("192.0.2.1/24");
	c.pool = (struct rte_mempool *)&c;
	expect_open_refused(&c, EINVAL, "pool");
}

TEST(device_names)
{
	struct rocade_port_conf conf[2] = {
		port_conf("192.0.2.1/24"), port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2];
	struct rocade_port *more[2] = {NULL, NULL};

	conf[0].name = "left";
	conf[1].name = "left";
	assert_int_equal(rocade_open_loop(conf, ports), EEXIST);
	assert_non_null(strstr(rocade_error(), "left"));
	conf[1].name = "right";
	assert_int_equal(rocade_open_loop(conf, ports), 0);
	assert_string_equal(ibv_get_device_name(rocade_port_device(ports[1])), "right");
	conf[0].name = NULL;
	/* the name "right" is taken */
	assert_int_equal(rocade_open_loop(conf, more), EEXIST);
	conf[1].name = NULL;
	assert_int_equal(rocade_open_loop(conf, more), 0);
	assert_string_equal(ibv_get_device_name(rocade_port_device(more[0])), "rocade0");
	assert_string_equal(ibv_get_device_name(rocade_port_device(more[1])), "rocade1");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rocade_close_port(ports[i]), 0);
		assert_int_equal(rocade_close_port(more[i]), 0);
	}
}

/* A device list keeps its device objects valid after the port is closed. */
TEST(device_in_list_outlives_its_port)
{
	struct rocade_port_conf conf[2] = {
		port_conf("192.0.2.1/24"), port_conf("192.0.2.2/24")};
	struct rocade_port *ports[2];
	struct ibv_device **list;
	int n;

	assert_int_equal(rocade_open_loop(conf, ports), 0);
	list = ibv_get_device_list(&n);
	assert_int_equal(rocade_close_port(ports[0]), 0);
	assert_int_equal(rocade_close_port(ports[1]), 0);
	assert_string_equal(ibv_get_device_name(list[0]), "rocade0");
	errno = 0;
	assert_null(ibv_open_device(list[0]));
	assert_int_equal(errno, ENODEV);
	ibv_free_device_list(list);
}

TEST_WITH(test_addresses, api_setup, api_teardown)
{
	union ibv_gid gid, other;
	char text[46];

	assert_int_equal(rocade_gid_parse("192.0.2.9", &gid), 0);
	assert_string_equal(rocade_gid_format(&gid, text, sizeof(text)), "192.0.2.9");
	assert_int_equal(rocade_gid_parse("192.0.2.9/24", &other), EINVAL);
	assert_int_equal(rocade_gid_parse("2001:db8::9", &other), 0);
	assert_string_equal(rocade_gid_format(&other, text, sizeof(text)), "2001:db8::9");
	assert_int_equal(rocade_gid_parse("", &other), EINVAL);
	assert_int_equal(rocade_gid_parse(NULL, &other), EINVAL);

	/* The neighbour is resolved once the engines run. */
	assert_int_equal(rocade_port_resolve(pair.a.port, &pair.b.gid), EAGAIN);
	pair_drain(&pair);
	assert_int_equal(rocade_port_resolve(pair.a.port, &pair.b.gid), 0);
	assert_int_equal(rocade_gid_parse("198.51.100.1", &other), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &other), ENETUNREACH);
	assert_int_equal(rocade_gid_parse("224.0.0.1", &other), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &other), EINVAL);
	assert_true(rocade_port_link_up(pair.a.port));
}

/* A call of libibverbs, for a program's own packets to the next hop. */
TEST_WITH(test_next_hop_mac, api_setup, api_teardown)
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_device_attr attr;
	uint8_t mac[6];
	uint16_t vid = 1;

	ah.grh.dgid = pair.b.gid;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(pair.a.context, &ah, mac, &vid), EAGAIN);
	pair_drain(&pair);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(pair.a.context, &ah, mac, &vid), 0);
	assert_int_equal(vid, 0);
	assert_int_equal(ibv_query_device(pair.b.context, &attr), 0);
	/* Both end as the EUI-64 of the port does. */
	assert_memory_equal(mac + 3, (const uint8_t *)&attr.node_guid + 5, 3);
	assert_int_equal(rocade_gid_parse("198.51.100.1", &ah.grh.dgid), 0);
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(pair.a.context, &ah, mac, NULL), ENETUNREACH);
	assert_int_equal(rocade_gid_parse("224.0.0.1", &ah.grh.dgid), 0);
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(pair.a.context, &ah, mac, NULL), EINVAL);
}

TEST_WITH(test_neighbours, api_setup, api_teardown)
{
	struct rocade_neigh rows[8];
	unsigned n;
	bool seen = false;

	rocade_port_resolve(pair.a.port, &pair.b.gid);
	pair_drain(&pair);
	n = rocade_port_neighs(pair.a.port, rows, 8);
	assert_true(n >= 1 && n <= 8);
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(&rows[i].gid, &pair.b.gid, 16) == 0) {
			assert_string_equal(rows[i].state, "reachable");
			seen = true;
		}
	}
	assert_true(seen);
	assert_int_equal(rocade_port_neighs(pair.a.port, NULL, 0), n);
}

TEST_WITH(test_peers, api_setup, api_teardown)
{
	struct rocade_peer rows[8];
	unsigned n = rocade_port_peers(pair.a.port, rows, 8);
	const struct rocade_peer *peer = NULL;

	assert_in_range(n, 1, 8);
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(&rows[i].gid, &pair.b.gid, 16) == 0)
			peer = &rows[i];
	}
	assert_non_null(peer);
	assert_int_equal(peer->engine, 0);
	assert_in_range(peer->qps, 1, 64);
	assert_int_equal(peer->send.qps_blocked + peer->read.qps_blocked, 0);
	assert_int_equal(peer->send.inflight + peer->read.inflight, 0);
	assert_int_not_equal(peer->cap, 0);
	/* Congestion control is on by default. */
	assert_true(peer->cc && !peer->send.cc_paced && !peer->read.cc_paced);
	assert_in_range(peer->send.window, 1, peer->cap);
	assert_in_range(peer->read.window, 1, peer->cap);
	/* Delays do not count between threads of one process. */
	assert_int_equal(peer->send.cc_target_ns, 0);
	assert_int_equal(peer->read.cc_target_ns, 0);
	assert_int_equal(rocade_port_peers(pair.a.port, NULL, 0), n);
}

static uint64_t
latency_count_of(const struct rocade_latency *row)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < ROCADE_LATENCY_BUCKETS; i++)
		count += row->buckets[i];
	return count;
}

/* Rows have the size that the program knows. A SEND is in the row of its type and operation. */
TEST_WITH(test_latencies, api_setup, api_teardown)
{
	struct {
		struct rocade_latency row;
		uint64_t more;
	} later[20];
	struct rocade_latency rows[20];
	unsigned n = rocade_port_latencies(pair.a.port, rows, 20);
	uint64_t before = latency_count_of(&rows[0]);
	struct ibv_wc wc;

	assert_int_equal(n, 18);
	assert_string_equal(rows[0].type, "RC");
	assert_string_equal(rows[0].operation, "send");
	assert_string_equal(rows[17].type, "XRC");
	assert_string_equal(rows[17].operation, "flush");
	assert_int_equal(pair_post_srq(&pair.b, 0, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 0, 0, 64, 0), 0);
	pair_drain(&pair);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	memset(later, 0xA5, sizeof(later));
	assert_int_equal(rocade_port_latencies_sized(
				 pair.a.port, &later[0].row, 20, sizeof(later[0])),
		n);
	assert_int_equal(latency_count_of(&later[0].row), before + 1);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(later[i].more, i < n ? 0 : UINT64_C(0xA5A5A5A5A5A5A5A5));
	for (unsigned i = 1; i < n; i++)
		assert_int_equal(
			latency_count_of(&later[i].row), latency_count_of(&rows[i]));
}

/* Of the first row, which is that of RC SENDs. */
static uint64_t
sum_ns(struct rocade_port *port)
{
	struct rocade_latency row;

	(void)rocade_port_latencies(port, &row, 1);
	return row.sum_ns;
}

/* Rows have the size that the program knows. The first SEND of a QP is measured: from its first packet on it took as long
 * as the histogram says. */
TEST_WITH(test_slowest, api_setup, api_teardown)
{
	struct {
		struct rocade_slow_request row;
		uint64_t more;
	} later[8];
	const struct rocade_slow_request *r = &later[0].row;
	uint64_t before = sum_ns(pair.a.port);
	struct ibv_wc wc;
	unsigned n;

	assert_int_equal(rocade_port_slowest(pair.a.port, NULL, 0), 0);
	assert_int_equal(pair_post_srq(&pair.b, 0, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 0, 0, 64, 0), 0);
	pair_drain(&pair);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	memset(later, 0xA5, sizeof(later));
	n = rocade_port_slowest_sized(pair.a.port, &later[0].row, 8, sizeof(later[0]));
	assert_int_equal(n, 1);
	assert_int_equal(rocade_port_slowest(pair.a.port, NULL, 8), 1);
	assert_string_equal(r->type, "RC");
	assert_string_equal(r->operation, "send");
	assert_int_equal(r->qpn, pair.a.qp[0]->qp_num);
	assert_int_equal(r->bytes, 64);
	assert_true(r->took_ns > 0);
	assert_true(r->age_ns < UINT64_C(100000000000));
	assert_int_equal(
		r->took_ns - r->queue_ns - r->neighbour_ns, sum_ns(pair.a.port) - before);
	assert_int_equal(r->queue_ns + r->window_ns + r->rnr_ns + r->neighbour_ns +
				 r->port_ns + r->nak_ns + r->timer_ns + r->answer_ns +
				 r->engine_ns,
		r->took_ns);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(later[i].more, i < n ? 0 : UINT64_C(0xA5A5A5A5A5A5A5A5));
	/* There is no room for it. */
	assert_int_equal(rocade_port_slowest_sized(
				 pair.a.port, &later[1].row, 0, sizeof(later[0])),
		1);
	assert_int_equal(later[1].row.took_ns, UINT64_C(0xA5A5A5A5A5A5A5A5));
}

TEST_WITH(test_set_addresses, api_setup, api_teardown)
{
	union ibv_gid gid;
	char text[46];

	assert_int_equal(
		rocade_port_set_addresses(pair.a.port, "bad", NULL, NULL), EINVAL);
	assert_int_equal(rocade_port_set_addresses(
				 pair.a.port, "192.0.2.7/24", "192.0.2.254", NULL),
		0);
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
	assert_string_equal(rocade_gid_format(&gid, text, sizeof(text)), "192.0.2.7");
	/* There is a route now. */
	assert_int_equal(rocade_gid_parse("198.51.100.1", &gid), 0);
	assert_int_equal(rocade_port_resolve(pair.a.port, &gid), EAGAIN);
}

#define MANY                                                                             \
	"192.0.2.1/24,192.0.2.11/24,192.0.2.12/24,192.0.2.13/24,2001:db8::1/64,2001:db8::2/64"

struct changes {
	unsigned made; /* of the gateway */
	bool stop;
};

#define CHANGES 4

/* Reading many addresses takes longer than a change of the gateway. The thread makes CHANGES for each change of
 * the gateway, and then waits for the next one: if it took the lock again and again, the other thread would
 * not get it. */
static void *
addresses_change_often(void *arg)
{
	struct changes *changes = arg;

	while (!__atomic_load_n(&changes->stop, __ATOMIC_RELAXED)) {
		unsigned made = __atomic_load_n(&changes->made, __ATOMIC_RELAXED);

		for (unsigned i = 0; i < CHANGES; i++) {
			if (rocade_port_set_addresses(pair.a.port, MANY, NULL, NULL) != 0)
				abort();
		}
		while (__atomic_load_n(&changes->made, __ATOMIC_RELAXED) == made &&
			!__atomic_load_n(&changes->stop, __ATOMIC_RELAXED))
			sched_yield();
	}
	return NULL;
}

/* One thread changes addresses, another the gateway: each change stays. */
TEST_WITH(addresses_and_gateway_change_in_two_threads, api_setup, api_teardown)
{
	struct changes changes = {.made = 0};
	unsigned wrong = 0;
	union ibv_gid gid;
	pthread_t thread;

	assert_int_equal(rocade_gid_parse("198.51.100.1", &gid), 0);
	assert_int_equal(
		pthread_create(&thread, NULL, addresses_change_often, &changes), 0);
	for (unsigned i = 0; i < 20000; i++) {
		bool routed = i % 2 == 0;

		assert_int_equal(rocade_port_set_addresses(pair.a.port, NULL,
					 routed ? "192.0.2.254" : "", NULL),
			0);
		__atomic_fetch_add(&changes.made, 1, __ATOMIC_RELAXED);
		sched_yield();
		wrong +=
			(rocade_port_resolve(pair.a.port, &gid) != ENETUNREACH) != routed;
	}
	__atomic_store_n(&changes.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wrong, 0);
}

TEST_WITH(counters_have_name_and_text, api_setup, api_teardown)
{
	struct rocade_stat rows[128];
	unsigned n = rocade_port_stats(pair.a.port, -1, rows, 128);

	assert_true(n > 20 && n <= 128);
	for (unsigned i = 0; i < n; i++)
		assert_true(rows[i].name[0] != '\0' && rows[i].text[0] != '\0');
	assert_int_equal(rocade_port_stats(pair.a.port, 0, NULL, 0), n);
	rocade_port_resolve(pair.a.port, &pair.b.gid);
	pair_drain(&pair);
	assert_true(pair_stat(&pair.b, "rx_other") > 0);
}
