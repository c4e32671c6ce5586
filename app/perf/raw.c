/* SPDX-License-Identifier: BSD-3-Clause */
/* raw-pingpong: one frame back and forth by rx_burst and tx_burst, without RDMA: the
 * lower bound that the port sets. The server returns each frame as it is. */
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "result.h"

#define MBUFS 8191
#define MBUF_BYTES (8192 + RTE_PKTMBUF_HEADROOM)
#define ETHER_TYPE_TEST 0x88b5 /* IEEE 802: local experimental */
#define RAW_CHECK_PASSES 65536
#define LOST_S 2

static int
raw_port_start(uint16_t port, const struct plan *plan, struct rte_mempool **pool)
{
	struct rte_eth_conf conf = {0};
	int rc;

	*pool = rte_pktmbuf_pool_create("raw", MBUFS, 256, 0, MBUF_BYTES, SOCKET_ID_ANY);
	if (*pool == NULL)
		return -1;
	rc = rte_eth_dev_configure(port, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(
			port, 0, (uint16_t)plan->rxd, SOCKET_ID_ANY, NULL, *pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(
			port, 0, (uint16_t)plan->txd, SOCKET_ID_ANY, NULL);
	return rc == 0 ? rte_eth_dev_start(port) : rc;
}

static bool
link_up(uint16_t port)
{
	struct rte_eth_link link;

	for (int i = 0; i < 1000; i++) {
		if (rte_eth_link_get_nowait(port, &link) == 0 &&
			link.link_status == RTE_ETH_LINK_UP)
			return true;
		rte_delay_us_sleep(10000);
	}
	return false;
}

static struct rte_mbuf *
frame_make(uint16_t port, struct rte_mempool *pool, uint64_t size)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
	struct rte_ether_hdr *eth;

	if (frame == NULL)
		return NULL;
	memset(rte_pktmbuf_append(frame, (uint16_t)size), 0, size);
	eth = rte_pktmbuf_mtod(frame, struct rte_ether_hdr *);
	rte_eth_macaddr_get(port, &eth->src_addr);
	memset(&eth->dst_addr, 0xff, sizeof(eth->dst_addr));
	eth->ether_type = rte_cpu_to_be_16(ETHER_TYPE_TEST);
	return frame;
}

/* Returns the next frame. NULL: the peer sent a message or disconnected, or, at the
 * client, nothing came for LOST_S seconds. */
static struct rte_mbuf *
frame_wait(uint16_t port, int link, bool server, struct msg *msg)
{
	uint64_t since = rte_rdtsc();
	struct rte_mbuf *frame;
	unsigned passes = 0;

	while (rte_eth_rx_burst(port, 0, &frame, 1) == 0) {
		if (++passes % RAW_CHECK_PASSES != 0)
			continue;
		if (link_poll(link, msg))
			return NULL;
		if (!server && rte_rdtsc() - since > LOST_S * rte_get_tsc_hz())
			return NULL;
	}
	return frame;
}

static bool
raw_client_loop(uint16_t port, struct rte_mbuf *frame, const struct plan *plan, int link,
	struct hist *hist)
{
	uint64_t hz = rte_get_tsc_hz(), before = rte_rdtsc();
	uint64_t warm = before + plan->warmup_ms * hz / 1000;
	uint64_t end = warm + plan->seconds * hz;
	struct msg msg;

	hist_clear(hist);
	while (before < end) {
		while (rte_eth_tx_burst(port, 0, &frame, 1) == 0)
			;
		frame = frame_wait(port, link, false, &msg);
		if (frame == NULL)
			return false;
		uint64_t now = rte_rdtsc();

		if (before >= warm)
			hist_add(hist,
				(uint64_t)((double)(now - before) * 5e8 / (double)hz));
		before = now;
	}
	rte_pktmbuf_free(frame);
	return true;
}

static int
raw_server_loop(uint16_t port, int link)
{
	struct msg msg = {.kind = MSG_DISCONNECTED};
	struct rte_mbuf *frame;

	while ((frame = frame_wait(port, link, true, &msg)) != NULL) {
		while (rte_eth_tx_burst(port, 0, &frame, 1) == 0)
			;
	}
	return msg.kind == MSG_END ? EXIT_OK : EXIT_RUN;
}

int
raw_run(const struct conf *conf, const struct plan *plan, int link, struct result *result)
{
	uint16_t port = (uint16_t)conf->port;
	struct msg msg = {.kind = MSG_READY};
	struct rte_mempool *pool;
	struct rte_mbuf *frame;
	int code = EXIT_RUN;

	if (!conf->server && link_recv(link, MSG_READY, &msg) != 0) {
		fprintf(stderr,
			PROGRAM ": the peer disconnected before it was ready (see "
				"its messages)\n");
		return EXIT_RUN;
	}
	if (raw_port_start(port, plan, &pool) != 0) {
		fprintf(stderr, PROGRAM ": cannot open port %u\n", port);
		return EXIT_ENVIRONMENT;
	}
	if (link_send(link, &msg) != 0 ||
		(conf->server && link_recv(link, MSG_READY, &msg) != 0) ||
		!link_up(port)) {
		fprintf(stderr, PROGRAM ": the peer disconnected, or the link is not up "
					"after 10 s\n");
	} else if (conf->server) {
		code = raw_server_loop(port, link);
		link_send(link, &msg);
		link_drain(link);
	} else {
		frame = frame_make(port, pool, plan->size);
		if (frame != NULL &&
			raw_client_loop(port, frame, plan, link, &result->hist))
			code = EXIT_OK;
		else
			fprintf(stderr,
				PROGRAM ": no frame came back within 2 s, or the server "
					"disconnected\n");
		/* The server stops polling before this port closes: memif would unmap the
		 * rings under it. */
		msg.kind = MSG_END;
		link_send(link, &msg);
		link_recv(link, MSG_READY, &msg);
		result->tally.messages = result->hist.count;
		result->tally.seconds = (double)plan->seconds;
	}
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	rte_mempool_free(pool);
	return code;
}
