/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm in a program that embeds Rocade: ports that are opened, changed and closed while the
 * program has channels, and a port that <rocade/cm.h> uses, too. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rocade/cm.h>

#include "await.h"
#include "case.h"
#include "rdmacm_fixture.h"

/* IDs and a channel that outlive the ports, and ports that are opened again. */
TEST(ports_come_and_go)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct end a, b;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, "0.0.0.0", PORT);
	ports_close();
	assert_int_equal(bind_errno(channel, ADDR_A, 0), EADDRNOTAVAIL);
	id = id_new(channel, RDMA_PS_TCP);
	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)addr_of(ADDR_A, 1), 2000),
		0);
	event_take_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_null(rdma_create_event_channel());
	ports_open();
	ends_connect(channel, ADDR_A, ADDR_B, PORT, &a, &b);
	ends_talk(&a, &b, "again");
	ends_disconnect(channel, &a, &b);
	all_close(channel, listener);
}

/* librdmacm keeps a context of each device. Without objects they do not keep the port open, and
 * their calls fail after it. */
TEST(contexts_outlive_their_port)
{
	struct ibv_td_init_attr td = {.comp_mask = 0};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_context **devices, *context;
	struct ibv_device_attr_ex attr_ex;
	struct ibv_device_attr attr;
	struct ibv_gid_entry entry;
	struct ibv_ah_attr ah = {.port_num = 1};
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct rocade_cm *cm;
	struct ibv_pd *pd;
	uint8_t mac[6];
	int n = 0;

	ports_open();
	devices = rdma_get_devices(&n);
	assert_int_equal(n, 2);
	context = devices[0];
	rdma_free_devices(devices);
	assert_string_equal(ibv_get_device_name(context->device), "rocade0");
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	assert_int_equal(rocade_close_port(ports[0]), EBUSY);
	assert_non_null(strstr(rocade_error(), "1 of its contexts are open"));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	ports_close();
#define FAILS_NULL(call)                                                                 \
	do {                                                                             \
		errno = 0;                                                               \
		assert_null(call);                                                       \
		assert_int_equal(errno, ENODEV);                                         \
	} while (0)
	FAILS_NULL(ibv_alloc_pd(context));
	FAILS_NULL(ibv_create_cq(context, 1, NULL, NULL, 0));
	FAILS_NULL(ibv_create_comp_channel(context));
	FAILS_NULL(ibv_alloc_td(context, &td));
	FAILS_NULL(ibv_open_xrcd(context, &xrcd));
	assert_int_equal(ibv_query_device(context, &attr), ENODEV);
	assert_int_equal(ibv_query_device_ex(context, NULL, &attr_ex), ENODEV);
	assert_int_equal(ibv_query_port(context, 1, &port), ENODEV);
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), -1);
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, &entry, 0), ENODEV);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(context, &ah, mac, NULL), ENODEV);
	assert_int_equal(rocade_context_set_engine(context, 0), ENODEV);
	assert_int_equal(rocade_cm_open(context, &cm), ENODEV);
	assert_string_equal(ibv_get_device_name(context->device), "rocade0");
	/* The library closes them when it finds new devices. */
	ports_open();
	devices = rdma_get_devices(&n);
	assert_int_equal(n, 2);
	rdma_free_devices(devices);
	ports_close();
}

/* The port rejects a request that the program has not seen, and the REJ still leaves. */
TEST(closed_port_sends_its_last_messages)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_event_channel *channel, *other;
	struct rdma_cm_id *listener, *id;
	struct end a;

	ports_open();
	channel = channel_new();
	other = channel_new();
	listener = listener_new(other, "0.0.0.0", PORT);
	id = id_routed(channel, RDMA_PS_TCP, ADDR_A, ADDR_B, PORT);
	end_prepare(&a, id);
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_true(await_readable(other->fd));
	port_close(1);
	event_take_status(channel, RDMA_CM_EVENT_REJECTED, 28);
	end_free(&a);
	rdma_destroy_event_channel(channel);
	all_close(other, listener);
}

/* More requests than the port has room for messages: a REJ for each leaves. */
TEST(closed_port_rejects_many_requests)
{
	enum { MANY = 300 };
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[MANY];
	int fd;

	ports_open();
	channel = channel_new();
	fd = raw_listener(PORT, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		struct rdma_conn_param param = {.retry_count = 7, .qp_num = 0x1000 + i};

		ids[i] = id_routed(channel, RDMA_PS_TCP, ADDR_A, ADDR_B, PORT);
		assert_int_equal(rdma_connect(ids[i], &param), 0);
		raw_request_take(fd);
	}
	port_close(1);
	for (unsigned i = 0; i < MANY; i++)
		event_take_status(channel, RDMA_CM_EVENT_REJECTED, 28);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rdma_destroy_id(ids[i]), 0);
	assert_int_equal(close(fd), 0);
	rdma_destroy_event_channel(channel);
	ports_close();
}

TEST(new_addresses_are_known)
{
	struct rdma_event_channel *channel;

	ports_open();
	channel = channel_new();
	assert_int_equal(bind_errno(channel, "192.0.2.3", 0), EADDRNOTAVAIL);
	assert_int_equal(
		rocade_port_set_addresses(ports[0], "192.0.2.3/24", NULL, NULL), 0);
	assert_int_equal(bind_errno(channel, "192.0.2.3", 0), 0);
	assert_int_equal(bind_errno(channel, ADDR_A, 0), EADDRNOTAVAIL);
	rdma_destroy_event_channel(channel);
	ports_close();
}

/* Waits for an event of rocade/cm.h. */
static struct rocade_cm_event
cm_event_wait(struct rocade_cm *cm, enum rocade_cm_event_type type)
{
	struct rocade_cm_event event;

	await(rocade_cm_next_event(cm, &event) == 0);
	assert_string_equal(rocade_cm_event_name(event.type), rocade_cm_event_name(type));
	return event;
}

/* rocade/cm.h and librdmacm have listeners on one port of the network: each gets its own
 * requests, whichever was first. */
TEST(shares_a_port_with_the_other_interface)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_event_channel *channel;
	struct rocade_cm_listener *their_listener;
	struct ibv_context *context;
	struct rocade_cm_event event;
	struct rdma_cm_id *listener, *id;
	struct rocade_cm *cm;
	struct end a, b;

	ports_open();
	context = ibv_open_device(rocade_port_device(ports[1]));
	assert_int_equal(rocade_cm_open(context, &cm), 0);
	assert_int_equal(rocade_cm_listen(cm, PORT + 1, 4, NULL, &their_listener), 0);
	channel = channel_new();
	listener = listener_new(channel, ADDR_B, PORT);
	ends_connect(channel, ADDR_A, ADDR_B, PORT, &a, &b);
	ends_talk(&a, &b, "librdmacm");
	id = id_routed(channel, RDMA_PS_TCP, ADDR_A, ADDR_B, PORT + 1);
	ends_disconnect(channel, &a, &b);
	end_prepare(&a, id);
	assert_int_equal(rdma_connect(id, &param), 0);
	event = cm_event_wait(cm, ROCADE_CM_REQUEST);
	assert_int_equal(rocade_cm_reject(event.id, "no", 2), 0);
	event_take_status(channel, RDMA_CM_EVENT_REJECTED, 28);
	rocade_cm_release(event.id);
	end_free(&a);
	rocade_cm_unlisten(their_listener);
	rocade_cm_close(cm);
	assert_int_equal(ibv_close_device(context), 0);
	ends_connect(channel, ADDR_A, ADDR_B, PORT, &a, &b);
	ends_disconnect(channel, &a, &b);
	all_close(channel, listener);
}

/* A program that uses rocade/cm.h connects to one that uses librdmacm. */
TEST(connects_from_the_other_interface)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct rdma_conn_param param = {.retry_count = 7};
	struct rocade_cm_param ours = {.size = sizeof(ours), .retry_count = 7};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct ibv_context *context;
	struct rocade_cm_event event;
	struct rocade_cm_id *id;
	struct rocade_cm *cm;
	union ibv_gid peer;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct end b;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, ADDR_B, PORT);
	context = ibv_open_device(rocade_port_device(ports[0]));
	pd = ibv_alloc_pd(context);
	attr.send_cq = attr.recv_cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	qp = ibv_create_qp(pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &init,
				 IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					 IBV_QP_ACCESS_FLAGS),
		0);
	assert_int_equal(rocade_cm_open(context, &cm), 0);
	assert_int_equal(rocade_gid_parse(ADDR_B, &peer), 0);
	assert_int_equal(rocade_cm_connect(cm, qp, &peer, PORT, &ours, NULL, &id), 0);
	end_prepare(&b, event_take(channel, RDMA_CM_EVENT_CONNECT_REQUEST));
	assert_int_equal(rdma_accept(b.id, &param), 0);
	event = cm_event_wait(cm, ROCADE_CM_ESTABLISHED);
	assert_ptr_equal(event.id, id);
	event_take(channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(qp->state, IBV_QPS_RTS);
	assert_int_equal(rdma_disconnect(b.id), 0);
	cm_event_wait(cm, ROCADE_CM_DISCONNECTED);
	assert_int_equal(rocade_cm_disconnect(id), 0);
	event_take(channel, RDMA_CM_EVENT_DISCONNECTED);
	end_free(&b);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	rocade_cm_release(id);
	rocade_cm_close(cm);
	assert_int_equal(ibv_destroy_cq(attr.send_cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	all_close(channel, listener);
}
