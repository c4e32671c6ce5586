/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events of the port, and QPs while the link is down. */
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

static struct verbs_pair pair;

static void
expect_port_event(struct verbs_side *s, enum ibv_event_type type)
{
	struct ibv_async_event event = pair_event(&pair, s);

	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, 1);
}

static enum ibv_port_state
port_state(struct verbs_side *s)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(s->context, 1, &attr), 0);
	return attr.state;
}

/* Both ends of the wire, and every open context, get the event. */
TEST(link_events_reach_every_context)
{
	struct verbs_pair_conf conf = {.engines = 2};
	struct verbs_side other;

	pair_open(&pair, &conf);
	other = pair.a;
	other.context = ibv_open_device(rocade_port_device(pair.a.port));
	assert_non_null(other.context);
	assert_int_equal(port_state(&pair.a), IBV_PORT_ACTIVE);
	pair_no_event(&pair, &pair.a);
	assert_int_equal(rocade_port_set_link(pair.a.port, false), 0);
	expect_port_event(&pair.a, IBV_EVENT_PORT_ERR);
	expect_port_event(&pair.b, IBV_EVENT_PORT_ERR);
	expect_port_event(&other, IBV_EVENT_PORT_ERR);
	assert_int_equal(port_state(&pair.a), IBV_PORT_DOWN);
	assert_int_equal(port_state(&pair.b), IBV_PORT_DOWN);
	assert_false(rocade_port_link_up(pair.b.port));
	assert_int_equal(rocade_port_set_link(pair.a.port, true), 0);
	expect_port_event(&pair.b, IBV_EVENT_PORT_ACTIVE);
	expect_port_event(&other, IBV_EVENT_PORT_ACTIVE);
	expect_port_event(&pair.a, IBV_EVENT_PORT_ACTIVE);
	pair_no_event(&pair, &pair.a);
	pair_no_event(&pair, &pair.b);
	/* Events may stay unread. */
	assert_int_equal(rocade_port_set_link(pair.a.port, false), 0);
	assert_int_equal(port_state(&other), IBV_PORT_DOWN);
	assert_int_equal(ibv_close_device(other.context), 0);
	pair_close(&pair);
}

/* While the link is down QPs keep their state; packets are lost, and the retries run
 * out. */
TEST(link_down_exhausts_retries)
{
	struct verbs_pair_conf conf = {.retry = 2, .timeout = 12, .qps = 2};
	struct ibv_wc wc;

	pair_open(&pair, &conf);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 0, 100), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 100, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(rocade_port_set_link(pair.b.port, false), 0);
	assert_int_equal(pair_send(&pair.a, 0, 2, 0, 5000, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	expect_port_event(&pair.a, IBV_EVENT_PORT_ERR);
	/* The other QP sent nothing and is still usable. */
	assert_int_equal(rocade_port_set_link(pair.b.port, true), 0);
	expect_port_event(&pair.a, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(pair_post_recv(&pair.b, 1, 3, 0, 100), 0);
	assert_int_equal(pair_send(&pair.a, 1, 3, 0, 100, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	pair_close(&pair);
}

TEST(address_change_raises_gid_change)
{
	struct verbs_pair_conf conf = {.engines = 1};
	union ibv_gid gid;

	pair_open(&pair, &conf);
	assert_int_equal(
		rocade_port_set_addresses(pair.a.port, "192.0.2.77/24", NULL, NULL), 0);
	expect_port_event(&pair.a, IBV_EVENT_GID_CHANGE);
	pair_no_event(&pair, &pair.b);
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
	assert_int_equal(gid.raw[15], 77);
	assert_int_equal(
		rocade_port_set_addresses(pair.a.port, "192.0.2.77/24", NULL, NULL), 0);
	pair_no_event(&pair, &pair.a);
	pair_close(&pair);
}
