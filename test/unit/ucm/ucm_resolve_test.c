/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolution of the peer's address, and the source that it selects. */
#include "ucm_fixture.h"

TEST_WITH(resolve_selects_the_source, ucm_setup, ucm_teardown)
{
	static const struct {
		const char *dst, *src;
	} rows[] = {{"192.0.2.1", "192.0.2.1"}, {"198.51.100.1", "198.51.100.1"},
		{"2001:db8::1", "2001:db8::1"}, {"239.1.2.3", "192.0.2.1"},
		{"ff15::1", "2001:db8::1"}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t id = make_id(&ctx.client, RDMA_PS_UDP);
		struct rdma_ucm_query query = {.id = id};
		struct rdma_ucm_query_route_resp route;
		struct sockaddr_in6 want;

		assert_int_equal(resolve_addr(&ctx.client, id, rows[i].dst, 1), 0);
		assert_int_equal(resolve_addr(&ctx.client, id, rows[i].dst, 1), -EINVAL);
		assert_int_equal(
			expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED).id, id);
		assert_int_equal(COMMAND(&ctx.client, QUERY_ROUTE, &query, &route), 0);
		want = sockaddr_of(rows[i].src, ntohs(route.src_addr.sin6_port));
		assert_true(ntohs(want.sin6_port) >= 32768);
		assert_memory_equal(&route.src_addr, &want, sizeof(want));
		assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	}
}

TEST_WITH(loopback_names_resolve, ucm_setup, ucm_teardown)
{
	static const char *const names[] = {"127.0.0.1", "0.0.0.0", "::1"};

	for (unsigned i = 0; i < RTE_DIM(names); i++) {
		uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

		assert_int_equal(resolve_addr(&ctx.client, id, names[i], 1), 0);
		expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
		assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	}
}

TEST_WITH(unreachable_address_raises_addr_error, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_resolve_ip cmd = {.id = id,
		.src_addr = sockaddr_of("2001:db8::1", 0),
		.dst_addr = sockaddr_of("192.0.2.1", 1)};
	struct rdma_ucm_event_resp event;

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", 1), 0);
	event = expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR);
	assert_int_equal((int)event.status, -EHOSTUNREACH);
	assert_int_equal(resolve_route(&ctx.client, id), -EINVAL);
	/* Source and destination must be of one family. */
	assert_int_equal(COMMAND(&ctx.client, RESOLVE_IP, &cmd, NULL), 0);
	event = expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR);
	assert_int_equal((int)event.status, -EINVAL);
}
