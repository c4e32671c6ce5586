/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_cm_pair ADDRESS [again|astray|batch|sync]: a server and a client of librdmacm in one thread. The client connects, sends some
 * messages and disconnects. Prints each event with its status. again: the client tries once more after an event that
 * names an error. astray: its first call to resolve an address is one that librdmacm refuses. batch: the messages are
 * one batch of ibv_wr_post(3), and may fail. sync: the client has no event channel, and a rule makes one of its calls
 * fail. */
#include <arpa/inet.h>
#include <poll.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "fault_calls.h"

#define PORT 7471
#define MESSAGES 8

struct end {
	const char *name;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool established, ended;
};

static struct end server = {.name = "server"}, client = {.name = "client"};
static struct sockaddr_in address = {.sin_family = AF_INET};
static uint8_t memory[2];
static bool again, astray, batch;

static struct rdma_conn_param
param(void)
{
	return (struct rdma_conn_param){.retry_count = 7, .rnr_retry_count = 7};
}

static void
qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {MESSAGES, MESSAGES, 1, 1, 0},
		.sq_sig_all = 1};

	check_minus("rdma_create_qp", rdma_create_qp(id, NULL, &attr));
}

static void
batch_qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
		.cap = {MESSAGES, MESSAGES, 1, 1, 0},
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND};

	check_minus("rdma_create_qp_ex", rdma_create_qp_ex(id, &attr));
}

static void
client_begin(void)
{
	struct sockaddr *to = (struct sockaddr *)&address,
			none = {.sa_family = AF_UNSPEC};

	check_minus("rdma_create_id",
		rdma_create_id(client.channel, &client.id, NULL, RDMA_PS_TCP));
	check_other("astray",
		!astray || rdma_resolve_addr(client.id, NULL, &none, 2000) != 0);
	check_minus("rdma_resolve_addr", rdma_resolve_addr(client.id, NULL, to, 2000));
}

static void
server_accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param with = param();
	struct ibv_mr *mr;

	server.id = id;
	qp_make(id);
	mr = rdma_reg_msgs(id, &memory[0], 1);
	check_pointer("rdma_reg_msgs", mr);
	for (int i = 0; i < MESSAGES; i++)
		check_minus(
			"rdma_post_recv", rdma_post_recv(id, NULL, &memory[0], 1, mr));
	check_minus("rdma_accept", rdma_accept(id, &with));
}

/* An event of a connection that has failed: the client ends, or tries it once more with this call. */
static void
client_failed(int (*call)(struct rdma_cm_id *id))
{
	client.ended = server.ended = !again;
	if (again)
		check_minus("again", call(client.id));
	again = false;
}

static int
addr_again(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000);
}

static int
route_again(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, 2000);
}

/* Of a request that has failed, the ID is of no more use. */
static int
connect_again(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	check_minus("rdma_destroy_id", rdma_destroy_id(id));
	client_begin();
	return 0;
}

static void
client_handle(enum rdma_cm_event_type type)
{
	struct rdma_conn_param with = param();

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		check_minus("rdma_resolve_route", rdma_resolve_route(client.id, 2000));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (batch)
			batch_qp_make(client.id);
		else
			qp_make(client.id);
		check_minus("rdma_connect", rdma_connect(client.id, &with));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		client_failed(addr_again);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		client_failed(route_again);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		client_failed(connect_again);
		break;
	default:
		break;
	}
}

static void
event_take(struct end *end)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	check_other("rdma_get_cm_event", rdma_get_cm_event(end->channel, &event) == 0);
	type = event->event;
	id = event->id;
	printf("%s %s %d\n", end->name, rdma_event_str(type), event->status);
	check_other("rdma_ack_cm_event", rdma_ack_cm_event(event) == 0);
	end->established |= type == RDMA_CM_EVENT_ESTABLISHED;
	end->ended |= type == RDMA_CM_EVENT_DISCONNECTED;
	if (end == &client)
		client_handle(type);
	else if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		server_accept(id);
	else if (type == RDMA_CM_EVENT_DISCONNECTED)
		check_minus("rdma_disconnect", rdma_disconnect(id));
}

/* Waits for an event of either end. */
static void
events_wait(void)
{
	struct pollfd fds[2] = {{.fd = server.channel->fd, .events = POLLIN},
		{.fd = client.channel->fd, .events = POLLIN}};

	check_other("poll", poll(fds, 2, -1) > 0);
	if (fds[0].revents != 0)
		event_take(&server);
	else
		event_take(&client);
}

static void
batch_send(const struct ibv_mr *mr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(client.id->qp);
	struct ibv_wc wc;

	ibv_wr_start(ex);
	for (int i = 0; i < MESSAGES; i++) {
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)&memory[1], 1);
	}
	check("ibv_wr_complete", ibv_wr_complete(ex));
	for (int i = 0; i < MESSAGES; i++)
		check_other(
			"rdma_get_send_comp", rdma_get_send_comp(client.id, &wc) == 1);
}

static void
messages_send(void)
{
	struct ibv_mr *mr = rdma_reg_msgs(client.id, &memory[1], 1);
	struct ibv_wc wc;

	check_pointer("rdma_reg_msgs", mr);
	if (batch) {
		batch_send(mr);
		return;
	}
	for (int i = 0; i < MESSAGES; i++) {
		check_minus("rdma_post_send",
			rdma_post_send(client.id, NULL, &memory[1], 1, mr, 0));
		check_other(
			"rdma_get_send_comp", rdma_get_send_comp(client.id, &wc) == 1);
		check_other("status", wc.status == IBV_WC_SUCCESS);
	}
}

static void
sync_connect(void)
{
	struct rdma_conn_param with = param();

	check_minus(
		"rdma_create_id", rdma_create_id(NULL, &client.id, NULL, RDMA_PS_TCP));
	check_minus("rdma_resolve_addr", addr_again(client.id));
	check_minus("rdma_resolve_route", route_again(client.id));
	qp_make(client.id);
	check_minus("rdma_connect", rdma_connect(client.id, &with));
}

int
main(int argc, char **argv)
{
	struct rdma_cm_id *listener;

	if (argc < 2 || argc > 3)
		return 2;
	again = argc == 3 && strcmp(argv[2], "again") == 0;
	astray = argc == 3 && strcmp(argv[2], "astray") == 0;
	batch = argc == 3 && strcmp(argv[2], "batch") == 0;
	server.channel = rdma_create_event_channel();
	check_pointer("rdma_create_event_channel", server.channel);
	client.channel = rdma_create_event_channel();
	check_pointer("rdma_create_event_channel", client.channel);
	address.sin_port = htons(PORT);
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	check_minus("rdma_create_id",
		rdma_create_id(server.channel, &listener, NULL, RDMA_PS_TCP));
	check_minus(
		"rdma_bind_addr", rdma_bind_addr(listener, (struct sockaddr *)&address));
	check_minus("rdma_listen", rdma_listen(listener, 2));
	if (argc == 3 && strcmp(argv[2], "sync") == 0) {
		sync_connect();
		return 4;
	}
	client_begin();
	while (!client.ended && !(client.established && server.established))
		events_wait();
	if (client.ended)
		return 0;
	messages_send();
	check_minus("rdma_disconnect", rdma_disconnect(client.id));
	while (!client.ended || !server.ended)
		events_wait();
	return 0;
}
