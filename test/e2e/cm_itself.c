/* SPDX-License-Identifier: BSD-3-Clause */
/*   cm_itself ADDRESS
 *
 * A program of one thread connects with itself by RDMA-CM, makes one end synchronous and disconnects it.
 * rdma_disconnect() returns when the connection has ended: no other thread can disconnect the other end. */
#include <arpa/inet.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>

#include "flow_end.h"

#define PORT 7474
#define RESOLVE 2000 /* of librdmacm, in ms: for the address and for the route */

static struct rdma_cm_id *
event_take(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &event) != 0)
		die("rdma_get_cm_event");
	if (event->event != type)
		die(rdma_event_str(event->event));
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void
id_qp_make(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	if (rdma_create_qp(id, NULL, &init) != 0)
		die("rdma_create_qp");
}

static struct rdma_cm_id *
listener_make(struct rdma_event_channel *channel, struct sockaddr_in *addr)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
		rdma_bind_addr(id, (struct sockaddr *)addr) != 0 ||
		rdma_listen(id, 1) != 0)
		die("listener");
	return id;
}

static struct rdma_cm_id *
active_make(struct rdma_event_channel *channel, struct sockaddr_in *addr)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
		rdma_resolve_addr(id, NULL, (struct sockaddr *)addr, RESOLVE) != 0)
		die("rdma_resolve_addr");
	event_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE) != 0)
		die("rdma_resolve_route");
	event_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	id_qp_make(id);
	return id;
}

int
main(int argc, char **argv)
{
	struct rdma_event_channel *ours = rdma_create_event_channel();
	struct rdma_event_channel *theirs = rdma_create_event_channel();
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *listener, *active, *passive;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};

	if (argc != 2 || inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1 ||
		ours == NULL || theirs == NULL)
		die("usage: cm_itself ADDRESS");
	listener = listener_make(theirs, &addr);
	active = active_make(ours, &addr);
	if (rdma_connect(active, &param) != 0)
		die("rdma_connect");
	passive = event_take(theirs, RDMA_CM_EVENT_CONNECT_REQUEST);
	id_qp_make(passive);
	if (rdma_accept(passive, &param) != 0)
		die("rdma_accept");
	event_take(ours, RDMA_CM_EVENT_ESTABLISHED);
	event_take(theirs, RDMA_CM_EVENT_ESTABLISHED);
	if (rdma_migrate_id(active, NULL) != 0)
		die("rdma_migrate_id");
	if (rdma_disconnect(active) != 0)
		die("rdma_disconnect");
	if (event_take(theirs, RDMA_CM_EVENT_DISCONNECTED) != passive)
		die("the other end has no event");
	if (rdma_disconnect(passive) != 0)
		die("rdma_disconnect of the other end");
	rdma_destroy_qp(active);
	rdma_destroy_qp(passive);
	if (rdma_destroy_id(active) != 0 || rdma_destroy_id(passive) != 0 ||
		rdma_destroy_id(listener) != 0)
		die("rdma_destroy_id");
	rdma_destroy_event_channel(ours);
	rdma_destroy_event_channel(theirs);
	printf("disconnected\n");
	return 0;
}
