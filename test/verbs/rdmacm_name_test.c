/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of librdmacm's IDs: both ends of a connection, and the event of its request, have
 * the same ones, however the program has given them. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "await.h"
#include "case.h"
#include "rdmacm_fixture.h"

/* All of the first port, whose address is ADDR_A. */
static const char *const names[] = {
	ADDR_A, ("::ffff:" ADDR_A), "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"};

static struct sockaddr *
given(const char *text, uint16_t port)
{
	static struct sockaddr_in6 made[4];
	static unsigned next;
	struct sockaddr_in6 *sa = &made[next++ % 4];

	if (strchr(text, ':') == NULL)
		return (struct sockaddr *)addr_of(text, port);
	*sa = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	assert_int_equal(inet_pton(AF_INET6, text, &sa->sin6_addr), 1);
	return (struct sockaddr *)sa;
}

static void
assert_named(struct sockaddr *sa, const char *text, uint16_t port)
{
	assert_memory_equal(sa, addr_of(text, port), sizeof(struct sockaddr_in));
}

/* All ways to ask for the addresses of an ID. */
static void
assert_ends(struct rdma_cm_id *id, uint16_t local, uint16_t peer)
{
	assert_named(rdma_get_local_addr(id), ADDR_A, local);
	assert_named(rdma_get_peer_addr(id), ADDR_A, peer);
	assert_named(&id->route.addr.src_addr, ADDR_A, local);
	assert_named(&id->route.addr.dst_addr, ADDR_A, peer);
	assert_int_equal(ntohs(rdma_get_src_port(id)), local);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), peer);
}

static struct rdma_cm_event *
request_get(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	assert_true(await_readable(channel->fd));
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	return event;
}

/* The ID, which has a route, asks for a connection, which is rejected. Destroys it. */
static void
request_check(struct rdma_event_channel *channel, struct rdma_cm_id *id,
	struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = {.retry_count = 7};
	uint16_t port = ntohs(rdma_get_src_port(id));
	struct rdma_cm_event *event;
	struct end end;

	assert_ends(id, port, PORT);
	end_prepare(&end, id);
	assert_int_equal(rdma_connect(id, &param), 0);
	event = request_get(channel);
	assert_ptr_equal(event->listen_id, listener);
	assert_ends(event->id, PORT, port);
	assert_int_equal(rdma_reject(event->id, NULL, 0), 0);
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	event_take_status(channel, RDMA_CM_EVENT_REJECTED, 28);
	end_free(&end);
}

/* source NULL: none is given. */
static void
resolved_check(struct rdma_event_channel *channel, const char *source, const char *to,
	struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, source != NULL ? given(source, 0) : NULL,
				 given(to, PORT), 2000),
		0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 2000), 0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	request_check(channel, id, listener);
}

/* The same with rdma_getaddrinfo(), whose node is a name too. */
static void
endpoint_check(struct rdma_event_channel *channel, const char *source, const char *to,
	struct rdma_cm_id *listener)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
	struct rdma_cm_id *id;

	if (source != NULL) {
		hints.ai_src_addr = given(source, 0);
		hints.ai_src_len = sizeof(struct sockaddr_in6);
	}
	assert_int_equal(rdma_getaddrinfo(to, "7471", &hints, &info), 0);
	assert_int_equal(rdma_create_ep(&id, info, NULL, NULL), 0);
	rdma_freeaddrinfo(info);
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	request_check(channel, id, listener);
}

static void
requests_check(struct rdma_event_channel *channel, struct rdma_cm_id *listener)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		resolved_check(channel, NULL, names[i], listener);
		resolved_check(channel, names[i], ADDR_A, listener);
		resolved_check(channel, "127.0.0.1", names[i], listener);
		endpoint_check(channel, NULL, names[i], listener);
		endpoint_check(channel, names[i], ADDR_A, listener);
	}
	resolved_check(channel, NULL, "0.0.0.0", listener);
	resolved_check(channel, "0.0.0.0", "::1", listener);
}

TEST(an_address_has_one_name)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener = NULL;

	ports_open();
	channel = channel_new();
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (listener != NULL)
			assert_int_equal(rdma_destroy_id(listener), 0);
		listener = id_new(channel, RDMA_PS_TCP);
		assert_int_equal(rdma_bind_addr(listener, given(names[i], PORT)), 0);
		/* It has its device before anybody asks, also with a loopback address. */
		assert_ptr_equal(listener->verbs->device, rocade_port_device(ports[0]));
		assert_named(rdma_get_local_addr(listener), ADDR_A, PORT);
		assert_int_equal(rdma_listen(listener, 4), 0);
		assert_named(rdma_get_local_addr(listener), ADDR_A, PORT);
		resolved_check(channel, NULL, names[i], listener);
	}
	requests_check(channel, listener);
	all_close(channel, listener);
}

TEST(a_wildcard_keeps_its_name)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, "0.0.0.0", PORT);
	requests_check(channel, listener);
	assert_null(listener->verbs);
	assert_named(rdma_get_local_addr(listener), "0.0.0.0", PORT);
	all_close(channel, listener);
}
