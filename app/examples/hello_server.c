/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs server for one client, hello_client.c. Both are programs for any RDMA device
 * and use nothing of Rocade. On one machine, without root and without an RDMA NIC:
 *
 *   cc hello_server.c -o hello_server -lrdmacm -libverbs
 *   cc hello_client.c -o hello_client -lrdmacm -libverbs
 *   rocaded --local &
 *   rocade-run ./hello_server &
 *   rocade-run ./hello_client 192.0.2.1 'hello, world'
 *
 * The client writes a text into the memory of this program: an RDMA WRITE with immediate
 * data, which also completes a receive here. This program replies with the text in upper
 * case: a SEND.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "hello.h"

enum { RECEIVE = 1, REPLY = 2 }; /* wr_id: names a work request in its completion */

struct server {
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id; /* the connection, with its QP */
	struct ibv_pd *pd;     /* protection domain: which QPs may use which memory */
	struct ibv_cq *cq;     /* completion queue */
	struct ibv_mr *mr;     /* the registration of text */
	char text[HELLO_BYTES];
};

/* Listens, and waits for a connection request. These calls of librdmacm block. */
static void
request_wait(struct server *s, const char *port)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *address;

	if (rdma_getaddrinfo(NULL, port, &hints, &address) != 0)
		err(1, "rdma_getaddrinfo %s", port);
	if (rdma_create_ep(&s->listener, address, NULL, NULL) != 0)
		err(1, "rdma_create_ep");
	rdma_freeaddrinfo(address);
	if (rdma_listen(s->listener, 1) != 0)
		err(1, "rdma_listen");
	if (rdma_get_request(s->listener, &s->id) != 0)
		err(1, "rdma_get_request");
}

/* Creates the verbs objects on the device that received the request. */
static void
server_objects_create(struct server *s)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, /* reliable connection */
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	s->pd = ibv_alloc_pd(s->id->verbs);
	s->cq = ibv_create_cq(s->id->verbs, 4, NULL, NULL, 0);
	if (s->pd == NULL || s->cq == NULL)
		err(1, "ibv_alloc_pd, ibv_create_cq");
	s->mr = ibv_reg_mr(s->pd, s->text, sizeof(s->text),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (s->mr == NULL)
		err(1, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(s->id, s->pd, &attr) != 0)
		err(1, "rdma_create_qp");
}

static void
client_accept(struct server *s)
{
	struct ibv_recv_wr wr = {
		.wr_id = RECEIVE}; /* no buffer: the WRITE has a target */
	struct ibv_recv_wr *bad;
	struct hello_buffer buffer = {
		.address = htobe64((uintptr_t)s->text),
		.rkey = htonl(s->mr->rkey),
		.bytes = htonl(sizeof(s->text)),
	};
	struct rdma_conn_param param = {
		.private_data = &buffer,
		.private_data_len = sizeof(buffer),
		/* for the client's WRITE, without limit: if this server posts its receive
		 * late */
		.rnr_retry_count = 7,
	};
	int error;

	/* Posted before the connection exists: a message that finds no receive has to be
	 * resent. */
	error = ibv_post_recv(s->id->qp, &wr, &bad);
	if (error != 0)
		errx(1, "ibv_post_recv: %s", strerror(error));
	if (rdma_accept(s->id, &param) != 0)
		err(1, "rdma_accept");
}

/* Returns the length of the text, which is in memory when the receive completes. */
static uint32_t
text_receive(struct server *s)
{
	struct ibv_wc wc;

	wc_wait(s->cq, &wc);
	if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		errx(1, "received something else than a WRITE with immediate data");
	if (ntohl(wc.imm_data) > sizeof(s->text))
		errx(1, "received a length of %u bytes", ntohl(wc.imm_data));
	return ntohl(wc.imm_data);
}

static void
text_return(struct server *s, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->text, .length = bytes, .lkey = s->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = REPLY,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED, /* else it completes without a CQE */
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int error = ibv_post_send(s->id->qp, &wr, &bad);

	if (error != 0)
		errx(1, "ibv_post_send: %s", strerror(error));
	/* A SEND of RC completes when the other end has acknowledged it. */
	wc_wait(s->cq, &wc);
}

static void
server_objects_destroy(struct server *s)
{
	(void)rdma_disconnect(s->id); /* fails if the client was first */
	rdma_destroy_qp(s->id);
	ibv_dereg_mr(s->mr);
	ibv_destroy_cq(s->cq);
	ibv_dealloc_pd(s->pd);
	rdma_destroy_ep(s->id);
	rdma_destroy_ep(s->listener);
}

int
main(int argc, char **argv)
{
	static struct server server;
	uint32_t bytes;

	if (argc > 2) {
		fprintf(stderr, "usage: hello_server [PORT]\n");
		return 2;
	}
	request_wait(&server, argc > 1 ? argv[1] : HELLO_PORT);
	server_objects_create(&server);
	client_accept(&server);
	bytes = text_receive(&server);
	printf("received: %.*s\n", (int)bytes, server.text);
	for (uint32_t i = 0; i < bytes; i++)
		server.text[i] = (char)toupper((unsigned char)server.text[i]);
	text_return(&server, bytes);
	server_objects_destroy(&server);
	return 0;
}
