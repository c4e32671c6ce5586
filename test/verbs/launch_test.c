/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines on lcores, and EAL initialisation while ports are open. Two lcores on one CPU
 * suffice. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "await.h"
#include "case.h"
#include "verbs_pair.h"

static struct verbs_pair pair;

static struct rocade_engine *
engine(struct verbs_side *s, unsigned i)
{
	return rocade_port_engine(s->port, i);
}

static void
exchange(void)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	await(ibv_poll_cq(pair.b.recv_cq, 1, &wc) != 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	await(ibv_poll_cq(pair.a.send_cq, 1, &wc) != 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

TEST(launch_needs_eal)
{
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24"};
	struct rocade_port *port = NULL;

	assert_int_equal(rocade_open_port(&conf, &port), EINVAL);
	assert_non_null(strstr(rocade_error(), "rte_eal_init"));
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 1), EINVAL);
}

/* EAL starts while Rocade devices are open. Its drivers do not see these devices. */
TEST(eal_ignores_rocade_devices)
{
	char *argv[] = {"launch_test", "--no-huge", "--no-pci", "--no-shconf",
		"--no-telemetry", "-m", "64", "--log-level=error", "--lcores",
		"(0,1,2)@0", "--vdev=net_null0"};
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24"};
	struct rocade_port *port = NULL;

	assert_true(rte_eal_init(11, argv) >= 0);
	conf.ethdev = 7;
	assert_int_equal(rocade_open_port(&conf, &port), ENODEV);
	assert_null(port);
}

TEST(pool_and_numa_reach_the_port)
{
	struct rte_mempool *small = rte_pktmbuf_pool_create("small", 64, 0, 0, 2048, 0);
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24", .pool = small};
	struct rocade_port *port = NULL;

	assert_non_null(small);
	assert_int_equal(rocade_open_port(&conf, &port), EINVAL);
	assert_non_null(strstr(rocade_error(), "pool: small has 64 buffers"));
	conf.pool = NULL;
	conf.numa = 1 + 77;
	assert_int_equal(rocade_open_port(&conf, &port), EINVAL);
	assert_non_null(strstr(rocade_error(), "NUMA node 77"));
	assert_null(port);
	rte_mempool_free(small);
}

static int
busy(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE))
		;
	return 0;
}

TEST(busy_lcore_or_engine_is_refused)
{
	bool stop = false;

	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 99), EINVAL);
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 100000), EINVAL);
	assert_int_equal(
		rocade_engine_launch(engine(&pair.a, 0), rte_get_main_lcore()), EINVAL);
	assert_int_equal(rocade_engine_stop(engine(&pair.a, 0)), EINVAL);
	assert_int_equal(rte_eal_remote_launch(busy, &stop, 1), 0);
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 1), EBUSY);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(1);
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 1), 0);
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 1), EBUSY);
	assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 2), EBUSY);
	assert_int_equal(rocade_engine_stop(engine(&pair.a, 0)), 0);
	assert_int_equal(rocade_engine_stop(engine(&pair.a, 0)), EINVAL);
	/* The lcore is free again. */
	assert_int_equal(rte_eal_remote_launch(busy, &stop, 1), 0);
	rte_eal_wait_lcore(1);
}

/* One lcore for both engines, one lcore each, and an engine that moves to another lcore
 * under traffic. */
TEST(engines_run_on_lcores)
{
	for (unsigned round = 0; round < 20; round++) {
		unsigned second = round % 2 == 0 ? 1 : 2;

		assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 1), 0);
		assert_int_equal(rocade_engine_launch(engine(&pair.b, 0), second), 0);
		exchange();
		/* A poll by the application is allowed meanwhile. */
		rocade_engine_poll(engine(&pair.a, 0));
		assert_int_equal(rocade_close_port(pair.a.port), EBUSY);
		if (round % 4 < 2) {
			assert_int_equal(rocade_engine_stop(engine(&pair.a, 0)), 0);
			assert_int_equal(rocade_engine_launch(engine(&pair.a, 0), 2), 0);
			exchange();
		}
		assert_int_equal(rocade_engine_stop(engine(&pair.b, 0)), 0);
		assert_int_equal(rocade_engine_stop(engine(&pair.a, 0)), 0);
	}
}

static int
setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 16});
	return 0;
}

static int
teardown(void **state)
{
	pair.fds = 0; /* EAL opened descriptors */
	pair_close(&pair);
	return 0;
}

TEST_GROUP(setup, teardown)
