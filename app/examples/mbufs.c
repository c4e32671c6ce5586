/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in mbufs: docs/embedding.md, "Messages in mbufs, without a copy".
 *
 * Ports 0 and 1 of this process are connected to each other, by memif for example. The client on port 0
 * sends messages to the server on port 1. The server gets them in the mbufs in which they have arrived,
 * adds 1 to each byte, and sends the same mbufs back. The client gets its replies in mbufs, too, and
 * verifies them. Neither end has registered memory.
 *
 *   mbufs --no-huge --no-pci -l 0 -m 256 --vdev net_memif0,role=server,socket=@mbufs \
 *         --vdev net_memif1,role=client,socket=@mbufs -- 10000
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <infiniband/verbs.h>
#include <rocade/mbuf.h>
#include <rocade/rocade.h>

#include <common/eal_end.h>

#define BYTES                                                                            \
	1000 /* of a message: less than the path MTU, so it is one packet and one mbuf */
#define DEPTH 128 /* receives, and requests on the way */
#define FRAMES 8191
#define CACHE 256

struct side {
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

static struct rte_mempool *pool; /* of the frames of both ports, so of all messages */

static void
side_open(struct side *s, uint16_t ethdev, const char *address)
{
	/* Frames in a mempool of the application can become its messages. */
	struct rocade_port_conf conf = {.size = sizeof(conf),
		.ethdev = ethdev,
		.addresses = address,
		.pool = pool};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct rocade_srq_mbufs mbufs = {
		.size = sizeof(mbufs), .pool = pool, .max_message = BYTES};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = DEPTH}};

	if (rocade_open_port(&conf, &s->port) != 0)
		errx(1, "%s", rocade_error());
	s->context = ibv_open_device(rocade_port_device(s->port));
	s->pd = s->context != NULL ? ibv_alloc_pd(s->context) : NULL;
	s->cq = s->pd != NULL ? ibv_create_cq(s->context, 2 * DEPTH, NULL, NULL, 0)
			      : NULL;
	s->srq = s->cq != NULL ? ibv_create_srq(s->pd, &srq) : NULL;
	if (s->srq == NULL || ibv_query_gid(s->context, 1, 0, &s->gid) != 0)
		err(1, "cannot create the queues");
	/* Before receives are posted and QPs are created. */
	if (rocade_srq_set_mbufs(s->srq, &mbufs) != 0)
		errx(1, "%s", rocade_error());
	qp.send_cq = qp.recv_cq = s->cq;
	qp.srq = s->srq;
	s->qp = ibv_create_qp(s->pd, &qp);
	if (s->qp == NULL)
		err(1, "ibv_create_qp");
}

static void
qp_state_set(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);

	if (error != 0)
		errx(1, "ibv_modify_qp to state %d: %s", attr->qp_state, strerror(error));
}

/* Both ends start with PSN 0. */
static void
side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	qp_state_set(s->qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = peer->gid, .hop_limit = 64}},
	};
	qp_state_set(s->qp, &attr,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
	qp_state_set(s->qp, &attr,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The receive of a message has no memory: its mbuf comes with the completion. */
static void
message_await(struct side *s)
{
	struct ibv_recv_wr wr = {0}, *bad;
	int error = ibv_post_srq_recv(s->srq, &wr, &bad);

	if (error != 0)
		errx(1, "ibv_post_srq_recv: %s", strerror(error));
}

/* The mbuf is Rocade's from here on, and is free when the peer has acknowledged it. Each request is
 * signaled here: its completion is polled with those of the receives. */
static void
mbuf_send(struct side *s, struct rte_mbuf *m)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	int error = rocade_post_send_mbuf(s->qp, &wr, m);

	if (error != 0)
		errx(1, "rocade_post_send_mbuf: %s", strerror(error));
}

/* Returns the next message, which is the caller's, or NULL. Counts requests that have completed. */
static struct rte_mbuf *
message_next(struct side *s, unsigned long *completed)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(s->cq, 1, &wc) != 1)
		return NULL;
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "a request failed: %s", ibv_wc_status_str(wc.status));
	if (wc.opcode == IBV_WC_SEND) {
		(*completed)++;
		return NULL;
	}
	message_await(s);
	return rocade_wc_mbuf(&wc);
}

static uint8_t
message_byte(unsigned long number, unsigned offset)
{
	return (uint8_t)(number * 7 + offset);
}

static void
client_send(struct side *s, unsigned long number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data = m != NULL ? (uint8_t *)rte_pktmbuf_append(m, BYTES) : NULL;

	if (data == NULL)
		errx(1, "the mempool is empty");
	for (unsigned i = 0; i < BYTES; i++)
		data[i] = message_byte(number, i);
	mbuf_send(s, m);
}

static void
reply_verify(const struct rte_mbuf *m, unsigned long number)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len != BYTES)
		errx(1, "reply %lu has %u bytes in its first mbuf", number, m->data_len);
	for (unsigned i = 0; i < BYTES; i++) {
		if (data[i] != (uint8_t)(message_byte(number, i) + 1))
			errx(1, "reply %lu: byte %u is %u instead of %u", number, i,
				data[i], (uint8_t)(message_byte(number, i) + 1));
	}
}

static void
messages_exchange(struct side *client, struct side *server, unsigned long messages)
{
	unsigned long sent = 0, replied = 0, client_completed = 0, server_completed = 0;

	while (replied < messages || server_completed < messages) {
		struct rte_mbuf *m;

		/* No more than the server has receives, and than fit the queues. */
		if (sent < messages && sent - replied < DEPTH / 2)
			client_send(client, sent++);
		rocade_engine_poll(rocade_port_engine(client->port, 0));
		rocade_engine_poll(rocade_port_engine(server->port, 0));
		m = message_next(server, &server_completed);
		if (m != NULL) {
			for (unsigned i = 0; i < m->data_len; i++)
				rte_pktmbuf_mtod(m, uint8_t *)[i]++;
			mbuf_send(server, m);
		}
		m = message_next(client, &client_completed);
		if (m != NULL) {
			reply_verify(m, replied++);
			rte_pktmbuf_free(m);
		}
	}
}

static uint64_t
counter_of(const struct side *s, const char *name)
{
	struct rocade_stat rows[256];
	unsigned n = rocade_port_stats(s->port, -1, rows, 256);

	for (unsigned i = 0; i < RTE_MIN(n, 256u); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	return 0;
}

static void
side_end(struct side *s)
{
	ibv_destroy_qp(s->qp);
	ibv_destroy_srq(s->srq);
	ibv_destroy_cq(s->cq);
	ibv_dealloc_pd(s->pd);
	ibv_close_device(s->context);
	if (rocade_close_port(s->port) != 0)
		errx(1, "%s", rocade_error());
}

int
main(int argc, char **argv)
{
	struct side side[2] = {0};
	unsigned long messages;
	char *end;
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		errx(1, "cannot start EAL");
	if (argc - used != 2 || (messages = strtoul(argv[used + 1], &end, 10)) == 0 ||
		*end != 0)
		errx(1, "usage: mbufs [EAL options] -- MESSAGES");
	if (rte_eth_dev_count_avail() != 2)
		errx(1,
			"EAL has %u ports: expected 2, connected to each other (-a and --vdev "
			"add some)",
			rte_eth_dev_count_avail());
	pool = rte_pktmbuf_pool_create(
		"mbufs", FRAMES, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (pool == NULL)
		errx(1, "no memory for %d mbufs", FRAMES);
	side_open(&side[0], 0, "192.0.2.1/24");
	side_open(&side[1], 1, "192.0.2.2/24");
	side_connect(&side[0], &side[1]);
	side_connect(&side[1], &side[0]);
	for (unsigned i = 0; i < DEPTH; i++) {
		message_await(&side[0]);
		message_await(&side[1]);
	}
	messages_exchange(&side[0], &side[1], messages);
	printf("%lu messages of %d bytes sent, returned and verified\n", messages, BYTES);
	printf("%lu messages and replies received in the mbufs of their frames\n",
		(unsigned long)(counter_of(&side[0], "mbufs_handed") +
				counter_of(&side[1], "mbufs_handed")));
	side_end(&side[0]);
	side_end(&side[1]);
	rte_mempool_free(pool);
	eal_end();
	return 0;
}
