/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "app_port.h"

#define BURST 32
#define POOL_CACHE 256
#define FRAMES_HELD 2048 /* of each queue, by Rocade */
#define SEGMENT 1024     /* bytes of a receive buffer, for SHARED_SEGMENTS */
#define SEGMENTS_OF_FRAME 10

struct app_port {
	uint16_t id;
	uint16_t queues;
	uint16_t rx_desc, tx_desc;
	enum shared_kind kind;
	struct rte_mempool *pool;
	struct rocade_port *port;
};

/* ---- The ethdev port, as an application sets it up ---- */

static int
pool_create(struct app_port *app, uint32_t mtu)
{
	uint32_t each = (uint32_t)app->rx_desc + FRAMES_HELD;
	uint32_t room = RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(mtu + 22, 1024u);
	bool segments = app->kind == SHARED_SEGMENTS;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "testpmd_%u", app->id);
	app->pool = rte_pktmbuf_pool_create(name,
		app->queues * each * (segments ? SEGMENTS_OF_FRAME : 1) +
			rte_lcore_count() * 2 * POOL_CACHE,
		POOL_CACHE, 0,
		(uint16_t)(segments ? RTE_PKTMBUF_HEADROOM + SEGMENT
				    : RTE_MAX(room, (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE)),
		rte_eth_dev_socket_id(app->id));
	return app->pool != NULL ? 0 : -ENOMEM;
}

static int
port_start(struct app_port *app, uint32_t mtu)
{
	int socket = rte_eth_dev_socket_id(app->id);
	struct rte_eth_dev_info info;
	struct rte_eth_conf eth = {0};
	int rc = rte_eth_dev_info_get(app->id, &info);

	if (rc == 0 && app->kind == SHARED_SEGMENTS)
		eth.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (rc == 0)
		rc = rte_eth_dev_configure(app->id, app->queues, app->queues, &eth);
	if (rc == 0 && mtu != 0)
		(void)rte_eth_dev_set_mtu(
			app->id, (uint16_t)mtu); /* not every PMD has it */
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(
			app->id, &app->rx_desc, &app->tx_desc);
	for (uint16_t i = 0; i < app->queues && rc == 0; i++) {
		rc = rte_eth_rx_queue_setup(
			app->id, i, app->rx_desc, (unsigned)socket, NULL, app->pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(
				app->id, i, app->tx_desc, (unsigned)socket, NULL);
	}
	return rc == 0 ? rte_eth_dev_start(app->id) : rc;
}

/* ---- The interface ---- */

struct app_port *
app_port_open(const struct conf *conf, const struct rocade_port_conf *port_conf,
	struct rocade_port **port, char err[ERR_MAX])
{
	struct rocade_shared_conf shared = {
		.size = sizeof(shared), .rx_queues = conf->shared == SHARED_QUEUES};
	struct app_port *app = calloc(1, sizeof(*app));
	int rc;

	if (app == NULL)
		return NULL;
	app->id = port_conf->ethdev;
	app->queues = port_conf->engines;
	app->rx_desc = port_conf->rx_desc;
	app->tx_desc = port_conf->tx_desc;
	app->kind = conf->shared;
	rc = pool_create(app, port_conf->mtu);
	if (rc == 0)
		rc = port_start(app, port_conf->mtu);
	if (rc != 0) {
		error_set(err, "cannot start port %u: %s", app->id, strerror(-rc));
	} else if (rocade_open_shared(port_conf, &shared, port) != 0) {
		error_set(err, "cannot open port %u: %s", app->id, rocade_error());
		rc = -1;
	}
	if (rc != 0) {
		app_port_close(app);
		return NULL;
	}
	app->port = *port;
	return app;
}

static unsigned
queue_poll(struct app_port *app, uint16_t queue)
{
	struct rocade_engine *engine = rocade_port_engine(app->port, queue);
	struct rte_mbuf *frames[BURST];
	uint16_t n, others;

	if (app->kind == SHARED_QUEUES) {
		n = others = rocade_engine_exceptions(engine, frames, BURST);
	} else {
		n = rte_eth_rx_burst(app->id, queue, frames, BURST);
		others = n != 0 ? rocade_engine_input(engine, frames, n) : 0;
	}
	/* An application has something better to do with them. */
	if (others != 0)
		rte_pktmbuf_free_bulk(frames, others);
	return n;
}

unsigned
app_port_poll(struct app_port *app)
{
	unsigned moved = 0;

	for (uint16_t i = 0; i < app->queues; i++)
		moved += queue_poll(app, i);
	return moved;
}

void
app_port_close(struct app_port *app)
{
	if (app == NULL)
		return;
	(void)rte_eth_dev_stop(app->id);
	(void)rte_eth_dev_close(app->id);
	rte_mempool_free(app->pool);
	free(app);
}
