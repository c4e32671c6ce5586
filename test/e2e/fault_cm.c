/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of librdmacm that a script of faults can refuse. */
#include <arpa/inet.h>

#include <rdma/rdma_cma.h>

#include "fault_calls.h"

#define PORT 7471

/* Waits for this event of a channel, and returns its ID. */
static struct rdma_cm_id *
event_wait(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	check_other("rdma_get_cm_event", rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type) {
		printf("%s instead of %s\n", rdma_event_str(event->event),
			rdma_event_str(type));
		exit(4);
	}
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void
cm_qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {4, 4, 1, 1, 0}};

	check_minus("rdma_create_qp", rdma_create_qp(id, NULL, &attr));
}

static struct rdma_cm_id *
cm_id_make(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	check_minus("rdma_create_id", rdma_create_id(channel, &id, NULL, space));
	return id;
}

static void
cm_resolve(struct rdma_event_channel *channel, struct rdma_cm_id *id,
	struct sockaddr_in *address)
{
	check_minus("rdma_resolve_addr",
		rdma_resolve_addr(id, NULL, (struct sockaddr *)address, 2000));
	event_wait(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

void
cm_run(const char *device_address)
{
	struct rdma_event_channel *servers = rdma_create_event_channel(), *clients;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct sockaddr_in group = {.sin_family = AF_INET};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *listener, *server, *client, *member;

	check_pointer("rdma_create_event_channel", servers);
	clients = rdma_create_event_channel();
	check_pointer("rdma_create_event_channel", clients);
	listener = cm_id_make(servers, RDMA_PS_TCP);
	check_minus(
		"rdma_bind_addr", rdma_bind_addr(listener, (struct sockaddr *)&address));
	check_minus("rdma_listen", rdma_listen(listener, 1));
	client = cm_id_make(clients, RDMA_PS_TCP);
	inet_pton(AF_INET, device_address, &address.sin_addr);
	cm_resolve(clients, client, &address);
	check_minus("rdma_resolve_route", rdma_resolve_route(client, 2000));
	event_wait(clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_qp_make(client);
	check_minus("rdma_connect", rdma_connect(client, &param));
	server = event_wait(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_qp_make(server);
	check_minus("rdma_accept", rdma_accept(server, &param));
	event_wait(clients, RDMA_CM_EVENT_ESTABLISHED);
	event_wait(servers, RDMA_CM_EVENT_ESTABLISHED);
	member = cm_id_make(clients, RDMA_PS_UDP);
	cm_resolve(clients, member, &address);
	cm_qp_make(member);
	inet_pton(AF_INET, "239.1.1.1", &group.sin_addr);
	check_minus("rdma_join_multicast",
		rdma_join_multicast(member, (struct sockaddr *)&group, NULL));
	event_wait(clients, RDMA_CM_EVENT_MULTICAST_JOIN);
	check_minus("rdma_disconnect", rdma_disconnect(client));
}

void
elsewhere_run(void)
{
	struct ibv_context other = {.num_comp_vectors = 1};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *id;

	check_pointer("rdma_create_event_channel", channel);
	id = cm_id_make(channel, RDMA_PS_TCP);
	check_minus("rdma_bind_addr", rdma_bind_addr(id, (struct sockaddr *)&address));
	id->verbs = &other;
	check_minus("rdma_listen", rdma_listen(id, 1));
	id->verbs = NULL;
}
