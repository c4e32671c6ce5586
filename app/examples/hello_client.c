/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs client of hello_server.c, where it says how to build and run both.
 *
 * Writes a text into the server's memory by RDMA WRITE with immediate data, and receives
 * the reply, the same text in upper case, as a SEND of the server.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "hello.h"

enum { RECEIVE = 1, WRITE = 2 }; /* wr_id: names a work request in its completion */

struct client {
	struct rdma_cm_id *id; /* the connection, with its QP */
	struct ibv_pd *pd;     /* protection domain: which QPs may use which memory */
	struct ibv_cq *cq;     /* completion queue */
	struct ibv_mr *mr;     /* the registration of text and reply */
	struct hello_buffer server; /* in host byte order */
	struct {
		char text[HELLO_BYTES];
		char reply[HELLO_BYTES];
	} memory;
};

/* Finds the device and the path to the server. These calls of librdmacm block. */
static void
server_find(struct client *c, const char *host, const char *port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *address;

	if (rdma_getaddrinfo(host, port, &hints, &address) != 0)
		err(1, "rdma_getaddrinfo %s %s", host, port);
	if (rdma_create_ep(&c->id, address, NULL, NULL) != 0)
		err(1, "rdma_create_ep");
	rdma_freeaddrinfo(address);
}

/* Creates the verbs objects on the device that server_find() has chosen. */
static void
client_objects_create(struct client *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, /* reliable connection */
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	c->pd = ibv_alloc_pd(c->id->verbs);
	c->cq = ibv_create_cq(c->id->verbs, 4, NULL, NULL, 0);
	if (c->pd == NULL || c->cq == NULL)
		err(1, "ibv_alloc_pd, ibv_create_cq");
	c->mr = ibv_reg_mr(c->pd, &c->memory, sizeof(c->memory), IBV_ACCESS_LOCAL_WRITE);
	if (c->mr == NULL)
		err(1, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = c->cq;
	if (rdma_create_qp(c->id, c->pd, &attr) != 0)
		err(1, "rdma_create_qp");
}

/* Posts the receive for the reply. Called before the text is sent, because a reply that
 * finds no receive has to be resent. */
static void
receive_post(struct client *c)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->memory.reply,
		.length = sizeof(c->memory.reply),
		.lkey = c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(c->id->qp, &wr, &bad);

	if (error != 0)
		errx(1, "ibv_post_recv: %s", strerror(error));
}

/* Connects, and learns from the reply to the connection request where the server's buffer
 * is. */
static void
server_connect(struct client *c)
{
	struct rdma_conn_param param = {
		.retry_count = 7, /* of both QPs, after a timeout */
		/* for the server's SENDs, without limit: if this client posts its receive
		 * late */
		.rnr_retry_count = 7,
	};
	const struct rdma_conn_param *reply;
	struct hello_buffer buffer;

	if (rdma_connect(c->id, &param) != 0)
		err(1, "rdma_connect");
	reply = &c->id->event->param.conn;
	if (reply->private_data_len < sizeof(buffer))
		errx(1, "the server does not say where its buffer is");
	memcpy(&buffer, reply->private_data, sizeof(buffer));
	c->server.address = be64toh(buffer.address);
	c->server.rkey = ntohl(buffer.rkey);
	c->server.bytes = ntohl(buffer.bytes);
}

static void
text_write(struct client *c, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)c->memory.text, .length = bytes, .lkey = c->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = WRITE,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, /* else it completes without a CQE */
		.imm_data = htonl(bytes),
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = c->server.address, .rkey = c->server.rkey},
	};
	struct ibv_send_wr *bad;
	int error;

	if (bytes > c->server.bytes)
		errx(1, "the server's buffer has %u bytes only", c->server.bytes);
	error = ibv_post_send(c->id->qp, &wr, &bad);
	if (error != 0)
		errx(1, "ibv_post_send: %s", strerror(error));
}

/* Returns the length of the reply. The WRITE and the receive share a CQ: their completions
 * come in either order, and wr_id tells which is which. */
static uint32_t
reply_receive(struct client *c)
{
	struct ibv_wc wc;
	uint32_t bytes = 0;

	for (int i = 0; i < 2; i++) {
		wc_wait(c->cq, &wc);
		if (wc.wr_id == RECEIVE)
			bytes = wc.byte_len;
	}
	return bytes;
}

static void
client_objects_destroy(struct client *c)
{
	(void)rdma_disconnect(c->id); /* fails if the server was first */
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->mr);
	ibv_destroy_cq(c->cq);
	ibv_dealloc_pd(c->pd);
	rdma_destroy_ep(c->id);
}

int
main(int argc, char **argv)
{
	static struct client client;
	size_t bytes;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: hello_client HOST TEXT [PORT]\n");
		return 2;
	}
	bytes = strlen(argv[2]);
	if (bytes > sizeof(client.memory.text))
		errx(1, "the text has %zu bytes: at most %d fit", bytes, HELLO_BYTES);
	memcpy(client.memory.text, argv[2], bytes);
	server_find(&client, argv[1], argc > 3 ? argv[3] : HELLO_PORT);
	client_objects_create(&client);
	receive_post(&client);
	server_connect(&client);
	text_write(&client, (uint32_t)bytes);
	bytes = reply_receive(&client);
	printf("reply: %.*s\n", (int)bytes, client.memory.reply);
	client_objects_destroy(&client);
	return 0;
}
