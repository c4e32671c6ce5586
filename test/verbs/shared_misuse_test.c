/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that uses its port and its frames wrongly, beside a device of Rocade: errors are
 * counted or reported, and no message of an RC QP is lost or doubled. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define INPUT_ROOM 1024 /* default of rx_desc */

/* In place of EAL's: what calls of Rocade are told. */
static enum rte_proc_type_t process_type = RTE_PROC_PRIMARY;

__attribute__((visibility("default"))) enum rte_proc_type_t
rte_eal_process_type(void)
{
	return process_type;
}

static struct await passing; /* since the sides were opened */
static unsigned posted, done, received;

static void
sides_open(void)
{
	for (unsigned i = 0; i < 2; i++)
		side_open(&sides[i], HOW_FRAMES);
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
	for (unsigned i = 0; i < DEPTH; i++)
		recv_post(&sides[1], i);
	posted = done = received = 0;
	passing = (struct await){.pauses = 0};
}

static void
sides_close(void)
{
	side_close(&sides[0]);
	side_close(&sides[1]);
}

/* Messages number 0, 1 .. from side 0 to side 1 arrive once, in order and complete. */
static void
completions_check(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, done++);
	}
	while (ibv_poll_cq(sides[1].cq, 1, &wc) == 1) {
		const uint8_t *at = sides[1].mem + wc.wr_id * MSG_BYTES;

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, MSG_BYTES);
		for (unsigned i = 0; i < MSG_BYTES; i++)
			assert_int_equal(at[i], received % 251);
		received++;
		recv_post(&sides[1], (unsigned)wc.wr_id);
	}
}

/* Passes of both sides until this many messages have arrived and completed. */
static void
messages_pass(unsigned until)
{
	while (received < until || done < until) {
		assert_true(await_goes_on(&passing));
		while (posted < until && posted - done < DEPTH)
			send_post(&sides[0], posted++);
		side_pass(&sides[0], HOW_FRAMES);
		side_pass(&sides[1], HOW_FRAMES);
		completions_check();
	}
}

/* Posts messages, and returns a frame of them as the application of side 1 receives it. */
static struct rte_mbuf *
frame_receive(void)
{
	struct rte_mbuf *m = NULL;

	messages_pass(1); /* the neighbours get to know each other */
	send_post(&sides[0], posted++);
	do {
		assert_true(await_goes_on(&passing));
		side_pass(&sides[0], HOW_FRAMES);
	} while (rte_eth_rx_burst(sides[1].ethdev, 0, &m, 1) == 0);
	return m;
}

static unsigned
input(struct rte_mbuf *m)
{
	return rocade_engine_input(rocade_port_engine(sides[1].port, 0), &m, 1);
}

static struct rocade_shared_stats
stats_of(const struct side *s)
{
	struct rocade_shared_stats stats;

	assert_int_equal(rocade_shared_stats(rocade_port_engine(s->port, 0), &stats), 0);
	return stats;
}

/* Returns how many packets the engine of side 1 has dropped. */
static uint64_t
dropped(void)
{
	struct rocade_stat rows[256];
	unsigned n = rocade_port_stats(sides[1].port, -1, rows, 256);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += strncmp(rows[i].name, "drop_", 5) == 0 ? rows[i].value : 0;
	return sum;
}

/* The application passes frames, and forgets to poll the engine: those that find no room are
 * counted, and sent again when it polls. */
TEST(engine_is_not_polled)
{
	struct rte_mbuf *m;

	sides_open();
	m = frame_receive();
	for (unsigned i = 0; i < INPUT_ROOM + 10; i++) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);

		assert_non_null(copy);
		assert_int_equal(input(copy), 0);
	}
	assert_in_range(stats_of(&sides[1]).input_full, 10, 11);
	assert_int_equal(input(m), 0);
	assert_in_range(stats_of(&sides[1]).input_full, 11, 12);
	for (unsigned i = 0; i < 20; i++) {
		side_pass(&sides[0], HOW_FRAMES);
		side_input(&sides[1]);
	}
	messages_pass(200);
	sides_close();
}

/* Frames that are not of the pool of the receive queue: Rocade gives each back to the pool that it came
 * from, and leaves the application what the application still refers to. */
TEST(frames_of_other_pools)
{
	struct rte_mempool *foreign = rte_pktmbuf_pool_create(
		"foreign", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	struct rte_mbuf *m, *copy, *clone;
	uint8_t before[64];

	assert_non_null(foreign);
	sides_open();
	m = frame_receive();
	memcpy(before, rte_pktmbuf_mtod(m, uint8_t *), sizeof(before));
	copy = rte_pktmbuf_copy(m, foreign, 0, UINT32_MAX);
	clone = rte_pktmbuf_clone(m, foreign);
	assert_non_null(copy);
	assert_non_null(clone);
	assert_int_equal(input(clone), 0);
	assert_int_equal(input(copy), 0);
	messages_pass(50);
	assert_int_equal(rte_mempool_in_use_count(foreign), 0);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), before, sizeof(before));
	rte_pktmbuf_free(m);
	sides_close();
	rte_mempool_free(foreign);
}

/* Frames without their headers come back, and one whose end is missing is dropped. */
TEST(frames_are_cut_off)
{
	static const uint16_t lengths[] = {0, 1, 13, 14, 20, 33, 34, 41};
	struct rte_mbuf *m, *cut;
	unsigned kept = 0;
	uint64_t before;

	sides_open();
	m = frame_receive();
	for (unsigned i = 0; i < RTE_DIM(lengths); i++) {
		cut = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
		assert_non_null(cut);
		assert_int_equal(
			rte_pktmbuf_trim(cut, (uint16_t)(cut->data_len - lengths[i])), 0);
		if (input(cut) == 1) {
			rte_pktmbuf_free(cut);
			kept++;
		}
	}
	assert_true(kept >= 6); /* all that have no whole IP header */
	side_pass(&sides[1], HOW_FRAMES);
	before = dropped();
	cut = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
	assert_non_null(cut);
	assert_int_equal(rte_pktmbuf_trim(cut, 30), 0);
	assert_int_equal(input(cut), 0);
	side_pass(&sides[1], HOW_FRAMES);
	assert_int_equal(dropped(), before + 1);
	rte_pktmbuf_free(m);
	messages_pass(50);
	sides_close();
}

/* Waits for this event of the port of side 0, while the application does not use its port. */
static void
event_await(enum ibv_event_type type)
{
	struct ibv_async_event event;

	for (;;) {
		assert_true(await_goes_on(&passing));
		rocade_engine_poll(rocade_port_engine(sides[0].port, 0));
		if (ibv_get_async_event(sides[0].context, &event) != 0)
			continue;
		ibv_ack_async_event(&event);
		assert_int_equal(event.event_type, type);
		return;
	}
}

/* A secondary process of DPDK can open no port, whatever its configuration. */
TEST(secondary_process_is_refused)
{
	struct rocade_port_conf conf = {.size = sizeof(conf),
		.addresses = "192.0.2.1/24",
		.ethdev = sides[0].ethdev};
	struct rocade_shared_conf shared = {.size = sizeof(shared)};
	struct rocade_port *port = NULL;

	process_type = RTE_PROC_SECONDARY;
	assert_int_equal(rocade_open_shared(&conf, &shared, &port), EOPNOTSUPP);
	assert_non_null(strstr(rocade_error(), "a secondary process of DPDK"));
	assert_int_equal(rocade_open_port(&conf, &port), EOPNOTSUPP);
	assert_non_null(strstr(rocade_error(), "only the primary process"));
	assert_null(port);
	process_type = RTE_PROC_PRIMARY;
	assert_int_equal(rocade_open_port(&conf, &port), EBUSY); /* the application's */
	side_open(&sides[0], HOW_FRAMES);
	side_close(&sides[0]);
}

/* The application closes its port before the device: the link goes down, what is posted fails, and the
 * device can be closed. No test runs after this one. */
TEST(port_is_closed_first)
{
	struct ibv_wc wc;

	sides[0].timeout = 8; /* 1 ms */
	sides_open();
	messages_pass(50);
	assert_int_equal(fcntl(sides[0].context->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rte_eth_dev_stop(sides[0].ethdev), 0);
	assert_int_equal(rte_eth_dev_close(sides[0].ethdev), 0);
	send_post(&sides[0], posted++);
	while (ibv_poll_cq(sides[0].cq, 1, &wc) == 0) {
		assert_true(await_goes_on(&passing));
		rocade_engine_poll(rocade_port_engine(sides[0].port, 0));
	}
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	event_await(IBV_EVENT_PORT_ERR);
	sides_close();
}

TEST_GROUP(app_start, app_end)
