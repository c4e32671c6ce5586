/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices: configuration, addresses, keys, counters, the clock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/engine_gsi.h"
#include "engine/engine_state.h"
#include "engine_link.h"

static struct fake_port port;

static struct dev_conf
conf_good(void)
{
	struct dev_conf conf = {
		.name = "test", .mtu = 1500, .qpn_base = 0x100, .max_qp = 16};
	struct net_addr *addr = &conf.net.addr[conf.net.addr_count++];

	assert_int_equal(gid_parse("192.0.2.1/24", addr->gid, &addr->prefix_len), 0);
	return conf;
}

/* An invalid configuration is refused: nothing is left behind, and the caller still owns
 * the port. */
TEST(refused_configuration_leaves_nothing)
{
	struct dev_conf conf;
	struct dev *dev = NULL;

	fake_init(&port, 2, 1);
#define REFUSE(field, value)                                                             \
	do {                                                                             \
		conf = conf_good();                                                      \
		conf.field = value;                                                      \
		assert_int_equal(                                                        \
			dev_create(&conf, &port.port, &alloc_plain, &dev), -EINVAL);     \
		assert_null(dev);                                                        \
		assert_false(port.closed);                                               \
	} while (0)
	REFUSE(mtu, 575);
	REFUSE(mtu, 9001);
	REFUSE(max_qp, 0);
	REFUSE(max_qp, (1u << 17) + 1);
	REFUSE(qpn_base, 1);
	REFUSE(qpn_base, 0xFFFFFF);
	REFUSE(net.vlan, 4095);
	REFUSE(net.addr_count, 0);
	REFUSE(net.addr_count, NET_MAX_ADDRS);
	REFUSE(net.addr[0].gid[12], 224);
#undef REFUSE
	port.port.queue_count = 0;
	conf = conf_good();
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), -EINVAL);
	port.port.queue_count = DEV_MAX_ENGINES + 1;
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), -EINVAL);
	port.port.queue_count = 2;
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	dev_destroy(dev);
	fake_fini(&port);
}

/* A peer may have a packet in flight, however short the ring that it is received into. */
TEST(shortest_receive_ring_has_a_window)
{
	static const struct {
		uint32_t ring, window;
	} rows[] = {{1, 1}, {2, 1}, {3, 1}, {64, 32}};
	struct dev_conf conf = conf_good();
	struct dev *dev;

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		fake_init(&port, 2, 1);
		port.port.caps.rx_ring = rows[i].ring;
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		assert_int_equal(dev->conf.peer_window, rows[i].window);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* Behind the daemon no packet to another client is lost (docs/protocol.md 7.7), unless on purpose. */
TEST(local_peers_of_a_client_are_lossless)
{
	static const struct dev_hooks hooks;
	struct dev_conf conf = conf_good();
	struct dev *dev;

	for (unsigned i = 0; i < 3; i++) {
		fake_init(&port, 1, 1);
		conf.hooks = i == 0 ? NULL : &hooks;
		conf.lossy = i == 2;
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		assert_int_equal(dev->engines[0]->peers.lossless, i == 1);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* docs/protocol.md 1: the interface MTU less the largest headers: 88 bytes. */
TEST(active_mtu_follows_interface_mtu)
{
	static const struct {
		uint32_t mtu;
		enum ibv_mtu active;
	} rows[] = {{576, IBV_MTU_256}, {599, IBV_MTU_256}, {600, IBV_MTU_512},
		{1111, IBV_MTU_512}, {1112, IBV_MTU_1024}, {1500, IBV_MTU_1024},
		{2136, IBV_MTU_2048}, {4183, IBV_MTU_2048}, {4184, IBV_MTU_4096},
		{9000, IBV_MTU_4096}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct dev_conf conf = conf_good();
		struct dev *dev;

		fake_init(&port, 1, 1);
		conf.mtu = rows[i].mtu;
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		assert_int_equal(dev->active_mtu, rows[i].active);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* rocade_port_conf.no_cnp. */
TEST(configuration_turns_cnps_off)
{
	struct dev_conf conf = conf_good();

	for (unsigned i = 0; i < 2; i++) {
		struct dev *dev;

		conf.no_cnp = i == 1;
		fake_init(&port, 1, 1);
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		assert_int_equal(dev->engines[0]->shared.cnp_off, i == 1);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* rocade_port_conf.no_sack. */
TEST(configuration_turns_extensions_off)
{
	struct dev_conf conf = conf_good();

	for (unsigned i = 0; i < 2; i++) {
		struct dev *dev;

		conf.no_sack = i == 1;
		fake_init(&port, 1, 1);
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		assert_int_equal(dev->engines[0]->peers.ext_off, i == 1);
		assert_int_equal(ext_query_own(dev->gsi->ext) == 0, i == 1);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* docs/embedding.md, "Statistics and fault injection". */
TEST(environment_switches_paths_off)
{
	static const char *const values[] = {
		"direct-place,tlp,cnp,sack,srq-claim", "hold,read-gap", "", NULL};
	struct dev_conf conf = conf_good();

	for (unsigned i = 0; i < RTE_DIM(values); i++) {
		struct dev *dev;
		const struct engine *e;

		if (values[i] != NULL)
			setenv("ROCADE_OFF", values[i], 1);
		else
			unsetenv("ROCADE_OFF");
		fake_init(&port, 1, 1);
		assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
		e = dev->engines[0];
		assert_int_equal(e->shared.direct_place_off, i == 0);
		assert_int_equal(e->shared.tlp_off, i == 0);
		assert_int_equal(e->shared.cnp_off, i == 0);
		assert_int_equal(e->claim.off, i == 0);
		assert_int_equal(e->peers.ext_off, i == 0);
		assert_int_equal(ext_query_own(dev->gsi->ext) == 0, i == 0);
		assert_int_equal(e->shared.hold == NULL, i == 1);
		assert_int_equal(e->shared.read_gap_off, i == 1);
		dev_destroy(dev);
		fake_fini(&port);
	}
}

/* The GID table: the addresses, then the link-local one; entry 3 repeats entry 0. The
 * default peer window is half the port's receive ring. */
TEST(gid_table_and_defaults)
{
	static const uint8_t local[16] = {
		0xfe, 0x80, [8] = 0x00, 0, 0, 0xff, 0xfe, 0, 0, 0x01};
	static const uint8_t none[16];
	struct dev_conf conf = conf_good();
	struct dev *dev;

	fake_init(&port, 3, 1);
	conf.qpn_base = 0;
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	assert_int_equal(dev->engine_count, 3);
	assert_memory_equal(dev->gids[0], conf.net.addr[0].gid, 16);
	assert_memory_equal(dev->gids[1], local, 16);
	assert_memory_equal(dev->gids[2], none, 16);
	assert_memory_equal(dev->gids[3], dev->gids[0], 16);
	assert_memory_equal(dev->gids[4], none, 16);
	assert_int_equal(dev->guid, UINT64_C(0x000000fffe000001));
	assert_int_equal(dev->conf.peer_window, 512);
	assert_in_range(dev->qps.pool.base, 2, 0xFFFFFE - 16);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(engine_index(dev->engines[i]), i);
		assert_ptr_equal(engine_dev(dev->engines[i]), dev);
	}
	/* A new address replaces the entry; an invalid one changes nothing. */
	conf.net.addr[0].gid[15] = 9;
	assert_int_equal(dev_set_net(dev, &conf.net), 0);
	assert_int_equal(dev->gids[0][15], 9);
	assert_int_equal(dev->gids[3][15], 9);
	conf.net.addr[0].gid[12] = 255;
	assert_int_equal(dev_set_net(dev, &conf.net), -EINVAL);
	assert_int_equal(dev->gids[0][12], 192);
	assert_int_equal(dev->conf.net.addr[0].gid[12], 192);
	dev_destroy(dev);
	fake_fini(&port);
}

/* A number of a basic SRQ is none of those by which packets name XRC SRQs, and not used
 * when the numbers begin again. */
TEST(srq_numbers_are_unique)
{
	struct dev_conf conf = conf_good();
	struct srq srq = {.srqn = 0};
	struct dev *dev;

	fake_init(&port, 1, 1);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	assert_in_range(dev_srq_number(dev), 1, 0xFFFFFE);
	dev->srqs.base = 0x1000;
	dev->next_srqn = 0xFFE;
	srq.srqn = dev_srq_number(dev);
	assert_int_equal(srq.srqn, 0xFFF);
	dev_srq_add(dev, &srq);
	assert_int_equal(dev_srq_number(dev), 0x1000 + SRQ_TABLE_MAX);
	dev->next_srqn = 0xFFFFFD;
	assert_int_equal(dev_srq_number(dev), 0xFFFFFE);
	assert_int_equal(dev_srq_number(dev), 1);
	dev->next_srqn = 0x1000FFD;
	assert_int_equal(dev_srq_number(dev), 0xFFE);
	assert_int_equal(dev_srq_number(dev), 0x1000 + SRQ_TABLE_MAX);
	dev_srq_remove(dev, &srq);
	dev_destroy(dev);
	fake_fini(&port);
}

/* The sum has the counters of each engine once. */
TEST(stats_sum_all_engines)
{
	struct dev_conf conf = conf_good();
	struct port_stats sum;
	struct dev *dev;

	fake_init(&port, 4, 1);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	for (unsigned i = 0; i < 4; i++) {
		engine_stats(dev->engines[i])->rx_packets = 1u << i;
		engine_stats(dev->engines[i])->drop[DROP_icrc] = 16u << i;
	}
	dev_stats(dev, &sum);
	assert_int_equal(sum.rx_packets, 15);
	assert_int_equal(sum.drop[DROP_icrc], 240);
	dev_destroy(dev);
	fake_fini(&port);
}

TEST(key_is_freed_once)
{
	struct dev_conf conf = conf_good();
	uint8_t memory[16];
	struct dev *dev;
	uint32_t key;

	fake_init(&port, 2, 1);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	assert_int_equal(
		key_alloc(&dev->keys, 1, 0x1000, memory, sizeof(memory), 0, &key), 0);
	assert_int_equal(key_free(&dev->keys, key), 0);
	assert_int_equal(key_free(&dev->keys, key), -EINVAL);
	dev_destroy(dev);
	fake_fini(&port);
}

/* An idle control engine's deadline is that of the net, another engine's is never. A pass
 * moves no packet. */
TEST(deadlines_of_idle_engines)
{
	struct dev_conf conf = conf_good();
	struct dev *dev;
	uint64_t now = NS_PER_SEC;

	fake_init(&port, 2, 1);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	for (unsigned i = 0; i < 100; i++) { /* announcements */
		engine_run(dev->engines[0], now);
		engine_run(dev->engines[1], now);
		now += 100 * NS_PER_MS;
	}
	assert_int_equal(engine_run(dev->engines[0], now), 0);
	assert_int_equal(engine_deadline(dev->engines[0]), net_deadline(dev->net));
	assert_int_equal(engine_deadline(dev->engines[1]), TIME_NEVER);
	dev_destroy(dev);
	fake_fini(&port);
}

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

#define READINGS 100

/* A time by both clocks: ours was read between the other two. */
struct reading {
	uint64_t before, ours, after;
};

/* Of many readings, the one in which the thread lost its core for the shortest time. */
static struct reading
clocks_read(void)
{
	struct reading best = {.after = UINT64_MAX};

	for (unsigned i = 0; i < READINGS; i++) {
		struct reading r = {.before = monotonic_ns()};

		r.ours = clock_now();
		r.after = monotonic_ns();
		if (r.after - r.before < best.after - best.before)
			best = r;
	}
	return best;
}

/* The clock is monotonic and agrees with CLOCK_MONOTONIC within 0.5 % over 50 ms. */
TEST(clock_agrees_with_system_clock)
{
	uint64_t last, elapsed, least, most;
	struct reading begin, end;

	clock_init();
	begin = clocks_read();
	last = begin.ours;
	while (monotonic_ns() - begin.after < 50 * NS_PER_MS) {
		uint64_t now = engine_clock();

		assert_true(now >= last);
		last = now;
	}
	end = clocks_read();
	elapsed = end.ours - begin.ours;
	least = end.before - begin.after;
	most = end.after - begin.before;
	assert_in_range(elapsed, least - least / 200, most + most / 200);
	assert_int_not_equal(clock_wall(), clock_wall());
}

TEST(timed_load_returns_the_word)
{
	uint64_t begin, took_ns = UINT64_MAX;
	const uint32_t word = 0xf00d;

	clock_init();
	begin = clock_now();
	assert_int_equal(clock_timed_load(&word, &took_ns), word);
	assert_true(took_ns <= clock_now() - begin);
}
