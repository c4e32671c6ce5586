/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of addresses: an ID that has a device is told the addresses that its peer sees, however
 * the program has given them. */
#include <arpa/inet.h>

#include "ucm_fixture.h"

/* All of one address, the first of the device. */
static const char *const names[] = {"192.0.2.1", "::ffff:192.0.2.1", "127.0.0.1",
	"127.9.8.7", "::ffff:127.0.0.1", "::1"};
static const char *const wildcards[] = {"0.0.0.0", "::"};

/* In the family of the text, whose form ucm_addr_make() would not keep. */
static struct sockaddr_in6
sockaddr_given(const char *text, uint16_t port)
{
	struct sockaddr_in6 sa = {.sin6_port = htons(port)};
	struct sockaddr_in *sa4 = (struct sockaddr_in *)&sa;

	sa.sin6_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(sa.sin6_family, text,
				 sa.sin6_family == AF_INET6 ? (void *)&sa.sin6_addr
							    : (void *)&sa4->sin_addr),
		1);
	return sa;
}

/* plain: by the older commands, for addresses of IP only. */
static int
bind_given(uint32_t id, const char *text, bool plain)
{
	struct sockaddr_in6 sa = sockaddr_given(text, LISTEN_PORT);
	struct rdma_ucm_bind_ip ip = {.id = id, .addr = sa};
	struct rdma_ucm_bind any = {.id = id, .addr_size = sizeof(sa)};

	memcpy(&any.addr, &sa, sizeof(sa));
	return plain ? COMMAND(&ctx.server, BIND_IP, &ip, NULL)
		     : COMMAND(&ctx.server, BIND, &any, NULL);
}

/* source NULL: none is given. */
static int
resolve_given(uint32_t id, const char *source, const char *to, bool plain)
{
	struct sockaddr_in6 src = {.sin6_family = 0},
			    dst = sockaddr_given(to, LISTEN_PORT);
	struct rdma_ucm_resolve_ip ip = {.id = id, .dst_addr = dst};
	struct rdma_ucm_resolve_addr any = {.id = id,
		.src_size = source != NULL ? sizeof(src) : 0,
		.dst_size = sizeof(dst)};

	if (source != NULL)
		src = sockaddr_given(source, 0);
	ip.src_addr = src;
	memcpy(&any.src_addr, &src, sizeof(src));
	memcpy(&any.dst_addr, &dst, sizeof(dst));
	return plain ? COMMAND(&ctx.client, RESOLVE_IP, &ip, NULL)
		     : COMMAND(&ctx.client, RESOLVE_ADDR, &any, NULL);
}

struct ends {
	struct sockaddr_in6 local, peer;
};

/* Returns the addresses of an ID: both queries have the same. */
static struct ends
ends_of(struct test_process *p, uint32_t id)
{
	struct rdma_ucm_query query = {.id = id, .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_addr_resp addr;

	assert_int_equal(COMMAND(p, QUERY_ROUTE, &query, &route), 0);
	assert_int_equal(COMMAND(p, QUERY, &query, &addr), 0);
	assert_memory_equal(&addr.src_addr, &route.src_addr, sizeof(route.src_addr));
	assert_memory_equal(&addr.dst_addr, &route.dst_addr, sizeof(route.dst_addr));
	return (struct ends){.local = route.src_addr, .peer = route.dst_addr};
}

static void
assert_named(const struct sockaddr_in6 *sa, const char *text, uint16_t port)
{
	struct sockaddr_in6 want = sockaddr_of(text, port);

	assert_memory_equal(sa, &want, sizeof(want));
}

/* The listener serves the device's address `text`, with the IDs of a request to it. */
static void
request_check(uint32_t listener, const char *text, const char *source, const char *to,
	bool plain)
{
	uint32_t active = make_id(&ctx.client, RDMA_PS_TCP), passive;
	struct ends a, b;

	assert_int_equal(resolve_given(active, source, to, plain), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	a = ends_of(&ctx.client, active);
	assert_named(&a.local, text, ntohs(a.local.sin6_port));
	assert_named(&a.peer, text, LISTEN_PORT);
	assert_int_equal(resolve_route(&ctx.client, active), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_id(&ctx.client, active, CLIENT_QPN, ""), 0);
	passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	b = ends_of(&ctx.server, passive);
	assert_memory_equal(&b.peer, &a.local, sizeof(a.local));
	assert_memory_equal(&b.local, &a.peer, sizeof(a.peer));
	a = ends_of(&ctx.client, active);
	assert_memory_equal(&b.peer, &a.local, sizeof(a.local));
	assert_memory_equal(&b.local, &a.peer, sizeof(a.peer));
	assert_int_equal(destroy_id(&ctx.server, passive, NULL), 0);
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_int_equal(destroy_id(&ctx.client, active, NULL), 0);
	assert_int_equal(
		ntohs(ends_of(&ctx.server, listener).local.sin6_port), LISTEN_PORT);
}

/* Each way to name the source and the destination, in one of the two forms of commands. */
static void
requests_check(uint32_t listener, const char *text, bool plain)
{
	for (unsigned i = 0; i < RTE_DIM(names); i++) {
		request_check(listener, text, NULL, names[i], plain);
		for (unsigned j = 0; j < RTE_DIM(names); j++)
			request_check(listener, text, names[j], names[i], plain);
		for (unsigned j = 0; j < RTE_DIM(wildcards); j++) {
			request_check(listener, text, wildcards[j], names[i], plain);
			request_check(listener, text, names[i], wildcards[j], plain);
			request_check(listener, text, NULL, wildcards[j], plain);
		}
	}
}

TEST_WITH(an_address_has_one_name, ucm_setup, ucm_teardown)
{
	for (unsigned i = 0; i < 2 * RTE_DIM(names); i++) {
		uint32_t listener = make_id(&ctx.server, RDMA_PS_TCP);
		bool plain = i % 2;
		struct ends ends;

		assert_int_equal(bind_given(listener, names[i / 2], plain), 0);
		ends = ends_of(&ctx.server, listener);
		assert_named(&ends.local, "192.0.2.1", LISTEN_PORT);
		assert_int_equal(listen_id(&ctx.server, listener, 4), 0);
		requests_check(listener, "192.0.2.1", plain);
		assert_int_equal(destroy_id(&ctx.server, listener, NULL), 0);
	}
}

/* A wildcard stays one. The IDs of its requests have the device's address. */
TEST_WITH(a_wildcard_keeps_its_name, ucm_setup, ucm_teardown)
{
	for (unsigned i = 0; i < RTE_DIM(wildcards); i++) {
		uint32_t listener = make_id(&ctx.server, RDMA_PS_TCP);
		struct sockaddr_in6 any = sockaddr_given(wildcards[i], LISTEN_PORT);
		struct ends ends;

		assert_int_equal(bind_given(listener, wildcards[i], true), 0);
		assert_int_equal(listen_id(&ctx.server, listener, 4), 0);
		requests_check(listener, "192.0.2.1", true);
		ends = ends_of(&ctx.server, listener);
		assert_memory_equal(&ends.local, &any, sizeof(any));
		assert_int_equal(destroy_id(&ctx.server, listener, NULL), 0);
	}
}

/* The first address of the device is one of IPv6: loopback addresses stand for that one. */
TEST_WITH(loopback_is_the_first_address, ucm_setup, ucm_teardown)
{
	static const char *const loopbacks[] = {"127.0.0.1", "::1", "::ffff:127.0.0.1"};
	struct net_conf net = ctx.device->conf.net;

	net.addr[0] = ctx.device->conf.net.addr[2];
	net.addr[2] = ctx.device->conf.net.addr[0];
	ucm_device_set_net(ctx.device, &net);
	for (unsigned i = 0; i < RTE_DIM(loopbacks); i++) {
		uint32_t listener = make_id(&ctx.server, RDMA_PS_TCP);
		struct ends ends;

		assert_int_equal(bind_given(listener, loopbacks[i], false), 0);
		ends = ends_of(&ctx.server, listener);
		assert_named(&ends.local, "2001:db8::1", LISTEN_PORT);
		assert_int_equal(listen_id(&ctx.server, listener, 4), 0);
		for (unsigned j = 0; j < RTE_DIM(loopbacks); j++) {
			request_check(listener, "2001:db8::1", NULL, loopbacks[j], false);
			request_check(listener, "2001:db8::1", loopbacks[j],
				"2001:db8::1", false);
		}
		assert_int_equal(destroy_id(&ctx.server, listener, NULL), 0);
	}
}

/* The program has the interface of a link-local address in the name. */
TEST_WITH(an_ipv6_address_keeps_its_scope, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_bind_ip bind = {
		.id = id, .addr = sockaddr_given("fe80::1", LISTEN_PORT)};
	struct ends ends;

	bind.addr.sin6_scope_id = 3;
	assert_int_equal(COMMAND(&ctx.client, BIND_IP, &bind, NULL), 0);
	ends = ends_of(&ctx.client, id);
	assert_memory_equal(&ends.local, &bind.addr, sizeof(bind.addr));
}
