/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application with ports of its own that is a verbs server besides: docs/embedding.md.
 *
 * It forwards all frames between ethdev ports 0 and 1, as a wire would, and has an address on
 * port 0. What arrives there for this address it gives to Rocade, and it serves one client of
 * RDMA at a time: hello_client.c, to which it replies with the text in upper case.
 *
 *   share -l 0 --vdev net_tap0,iface=left --vdev net_tap1,iface=right -- 192.0.2.5/24
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <rocade/cm.h>
#include <rocade/shared.h>

#include <common/eal_end.h>

#include "hello.h"

#define BURST 32
#define FRAMES 8191 /* of the application's pool */
#define DESCRIPTORS 1024

enum { RECEIVE = 1, REPLY = 2 }; /* wr_id */

/* The client that is served. */
struct service {
	struct rocade_cm *cm;
	struct rocade_cm_listener *listener;
	struct rocade_cm_id *id; /* NULL: there is no client */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	char text[HELLO_BYTES];
	unsigned long texts;
};

struct share {
	struct rte_mempool *pool;
	struct rocade_port *port;
	struct rocade_engine *engine;
	struct service service;
	unsigned long forwarded[2]; /* frames that arrived at each port */
};

static volatile sig_atomic_t ended;

static void
end(int number)
{
	(void)number;
	ended = 1;
}

/* ---- The ports of the application ---- */

/* Returns the number of transmit queues: two, if the port has as many. */
static uint16_t
wire_port_start(uint16_t id, struct rte_mempool *pool)
{
	const struct rte_eth_conf eth = {0};
	uint16_t tx_queues, rx_desc = DESCRIPTORS, tx_desc = DESCRIPTORS;
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(id, &info);

	tx_queues = rc == 0 && info.max_tx_queues > 1 ? 2 : 1;
	if (rc == 0)
		rc = rte_eth_dev_configure(id, tx_queues, tx_queues, &eth);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx_desc, &tx_desc);
	/* Some PMDs have as many receive as transmit queues; all are polled. */
	for (uint16_t i = 0; i < tx_queues && rc == 0; i++) {
		rc = rte_eth_rx_queue_setup(id, i, rx_desc, 0, NULL, pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(id, i, tx_desc, 0, NULL);
	}
	if (rc == 0)
		rc = rte_eth_dev_start(id);
	if (rc != 0)
		errx(1, "cannot start port %u: %s", id, strerror(-rc));
	/* A wire carries everything. */
	(void)rte_eth_promiscuous_enable(id);
	return tx_queues;
}

/* Rocade's frames leave on the queue of the application's own frames: both are sent by the
 * same thread. Only for a port with a single transmit queue. */
static uint16_t
rocade_frames_send(void *arg, unsigned engine, struct rte_mbuf **frames, uint16_t n)
{
	(void)arg;
	(void)engine;
	return rte_eth_tx_burst(0, 0, frames, n);
}

static void
rocade_port_open(struct share *s, const char *address, uint16_t tx_queues)
{
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .addresses = address, .ethdev = 0};
	struct rocade_shared_conf shared = {.size = sizeof(shared),
		.first_tx_queue = 1,
		.tx = tx_queues == 1 ? rocade_frames_send : NULL};

	if (rocade_open_shared(&conf, &shared, &s->port) != 0)
		errx(1, "%s", rocade_error());
	s->engine = rocade_port_engine(s->port, 0);
}

/* Frames that arrive at one port leave at the other, but for those that Rocade takes. */
static void
frames_forward(struct share *s, uint16_t from, uint16_t queue)
{
	struct rte_mbuf *frames[BURST];
	uint16_t n = rte_eth_rx_burst(from, queue, frames, BURST), sent;

	if (n != 0 && from == 0)
		n = rocade_engine_input(s->engine, frames, n);
	if (n == 0)
		return;
	sent = rte_eth_tx_burst(1 - from, 0, frames, n);
	s->forwarded[from] += sent;
	if (sent < n)
		rte_pktmbuf_free_bulk(frames + sent, n - sent);
}

/* ---- The service: verbs and RDMA-CM ---- */

static void
service_open(struct service *v, struct ibv_device *device)
{
	v->context = ibv_open_device(device);
	v->pd = v->context != NULL ? ibv_alloc_pd(v->context) : NULL;
	v->cq = v->pd != NULL ? ibv_create_cq(v->context, 4, NULL, NULL, 0) : NULL;
	v->mr = v->cq != NULL ? ibv_reg_mr(v->pd, v->text, sizeof(v->text),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
			      : NULL;
	if (v->mr == NULL)
		errx(1, "cannot open the device: %m");
	if (rocade_cm_open(v->context, &v->cm) != 0 ||
		rocade_cm_listen(
			v->cm, (uint16_t)atoi(HELLO_PORT), 4, NULL, &v->listener) != 0)
		errx(1, "%s", rocade_error());
}

static void
client_end(struct service *v)
{
	if (v->id == NULL)
		return;
	rocade_cm_release(v->id);
	ibv_destroy_qp(v->qp);
	v->id = NULL;
}

static void
write_receive_post(struct ibv_qp *qp)
{
	/* no buffer: the WRITE has a target */
	struct ibv_recv_wr wr = {.wr_id = RECEIVE}, *bad;
	int error = ibv_post_recv(qp, &wr, &bad);

	if (error != 0)
		errx(1, "ibv_post_recv: %s", strerror(error));
}

static struct ibv_qp *
qp_create(struct service *v)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp *qp = ibv_create_qp(v->pd, &init);

	if (qp == NULL || ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS) != 0)
		errx(1, "cannot create a QP: %m");
	return qp;
}

static void
request_accept(struct service *v, struct rocade_cm_id *id)
{
	struct hello_buffer buffer = {
		.address = htobe64((uintptr_t)v->text),
		.rkey = htonl(v->mr->rkey),
		.bytes = htonl(sizeof(v->text)),
	};
	struct rocade_cm_param param = {.size = sizeof(param),
		.private_data = &buffer,
		.private_len = sizeof(buffer),
		.rnr_retry_count = 7};

	if (v->id != NULL) {
		rocade_cm_release(id); /* one client at a time: rejects it */
		return;
	}
	v->qp = qp_create(v);
	v->id = id;
	write_receive_post(v->qp);
	if (rocade_cm_accept(id, v->qp, &param, NULL) != 0)
		client_end(v);
}

static void
events_handle(struct service *v)
{
	struct rocade_cm_event event;

	while (rocade_cm_next_event(v->cm, &event) == 0) {
		switch (event.type) {
		case ROCADE_CM_REQUEST:
			request_accept(v, event.id);
			break;
		case ROCADE_CM_REJECTED:
		case ROCADE_CM_UNREACHABLE:
		case ROCADE_CM_DISCONNECTED:
			client_end(v);
			break;
		default:
			break;
		}
	}
}

static void
text_reply(struct service *v, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)v->text, .length = bytes, .lkey = v->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = REPLY,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1};
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < bytes; i++)
		v->text[i] = (char)toupper((unsigned char)v->text[i]);
	if (ibv_post_send(v->qp, &wr, &bad) == 0)
		v->texts++;
}

static void
completions_handle(struct service *v)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(v->cq, 1, &wc) == 1) {
		/* A flushed request: its client has gone. */
		if (wc.status != IBV_WC_SUCCESS || v->id == NULL)
			continue;
		if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
			ntohl(wc.imm_data) <= sizeof(v->text))
			text_reply(v, ntohl(wc.imm_data));
	}
}

static void
service_close(struct service *v)
{
	client_end(v);
	rocade_cm_unlisten(v->listener);
	rocade_cm_close(v->cm);
	ibv_dereg_mr(v->mr);
	ibv_destroy_cq(v->cq);
	ibv_dealloc_pd(v->pd);
	ibv_close_device(v->context);
}

/* ---- The program ---- */

static void
share_run(const char *address)
{
	static struct share s;
	uint16_t tx_queues;

	if (rte_eth_dev_count_avail() != 2)
		errx(1, "EAL has %u ports: expected 2 (-a and --vdev add some)",
			rte_eth_dev_count_avail());
	s.pool = rte_pktmbuf_pool_create(
		"share", FRAMES, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (s.pool == NULL)
		errx(1, "no memory for %d frames", FRAMES);
	tx_queues = RTE_MIN(wire_port_start(0, s.pool), wire_port_start(1, s.pool));
	rocade_port_open(&s, address, tx_queues);
	service_open(&s.service, rocade_port_device(s.port));
	printf("share: forwarding, and serving at %s\n", address);
	fflush(stdout);
	while (!ended) {
		for (uint16_t queue = 0; queue < tx_queues; queue++) {
			frames_forward(&s, 0, queue);
			frames_forward(&s, 1, queue);
		}
		rocade_engine_poll(s.engine);
		/* In this order: the event ESTABLISHED moves the QP to RTS, and the client's
		 * first message may arrive together with it. */
		events_handle(&s.service);
		completions_handle(&s.service);
	}
	service_close(&s.service);
	/* The device goes first, then the ports, then the pool that their queues use. */
	if (rocade_close_port(s.port) != 0)
		errx(1, "%s", rocade_error());
	for (uint16_t i = 0; i < 2; i++) {
		rte_eth_dev_stop(i);
		rte_eth_dev_close(i);
	}
	rte_mempool_free(s.pool);
	printf("share: %lu and %lu frames forwarded, %lu texts returned\n",
		s.forwarded[0], s.forwarded[1], s.service.texts);
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		errx(1, "cannot start EAL");
	if (argc - used != 2)
		errx(1, "usage: share [EAL options] -- ADDRESS/PREFIX");
	signal(SIGINT, end);
	signal(SIGTERM, end);
	share_run(argv[used + 1]);
	eal_end();
	return 0;
}
