/* SPDX-License-Identifier: BSD-3-Clause */
/* Link and address events of a port, and the listeners that receive them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_state.h"
#include "engine_link.h"

static struct engine_link fixture;
static struct event_queue queue[2];
static struct dev_listener listener[2];

static void
init(void)
{
	engine_link_init(&fixture, NULL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(event_queue_init(&queue[i]), 0);
		fcntl(queue[i].fd, F_SETFL, O_NONBLOCK);
		dev_listen(fixture.a.dev, &listener[i], &queue[i]);
	}
	engine_link_drain(&fixture);
}

static void
fini(void)
{
	for (unsigned i = 0; i < 2; i++) {
		dev_unlisten(fixture.a.dev, &listener[i]);
		event_queue_fini(&queue[i]);
	}
	engine_link_fini(&fixture);
}

static void
expect_event(enum ibv_event_type type)
{
	struct event_record record;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(event_next(&queue[i], &record), 0);
		assert_int_equal(record.type, type);
	}
}

static void
expect_none(void)
{
	struct event_record record;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(event_next(&queue[i], &record), -EAGAIN);
}

/* The control engine polls the link four times a second. */
TEST(link_poll_raises_port_events)
{
	struct engine *e;

	init();
	e = fixture.a.dev->engines[0];
	expect_none();
	fixture.a.port.link_down = true;
	engine_run(e, fixture.now + PORT_IO_LINK_POLL_NS - 1);
	expect_none();
	engine_run(e, fixture.now + PORT_IO_LINK_POLL_NS);
	expect_event(IBV_EVENT_PORT_ERR);
	engine_run(e, fixture.now + 2 * PORT_IO_LINK_POLL_NS);
	expect_none();
	fixture.a.port.link_down = false;
	engine_run(e, fixture.now + 3 * PORT_IO_LINK_POLL_NS);
	expect_event(IBV_EVENT_PORT_ACTIVE);
	/* dev_link_up() polls at once and raises the event before it returns the
	 * state. */
	fixture.a.port.link_down = true;
	assert_false(dev_link_up(fixture.a.dev));
	fixture.a.port.link_down = false;
	assert_true(dev_link_up(fixture.a.dev));
	expect_event(IBV_EVENT_PORT_ERR);
	expect_event(IBV_EVENT_PORT_ACTIVE);
	expect_none();
	fini();
}

/* A link that is cut is down whatever the port says, and the port's own state counts again behind it. */
TEST(a_cut_link_is_down)
{
	init();
	dev_link_cut(fixture.a.dev, true);
	expect_event(IBV_EVENT_PORT_ERR);
	dev_link_cut(fixture.a.dev, true);
	assert_false(dev_link_up(fixture.a.dev));
	expect_none();
	dev_link_cut(fixture.a.dev, false);
	expect_event(IBV_EVENT_PORT_ACTIVE);
	fixture.a.port.link_down = true;
	dev_link_cut(fixture.a.dev, true);
	expect_event(IBV_EVENT_PORT_ERR);
	dev_link_cut(fixture.a.dev, false);
	assert_false(dev_link_up(fixture.a.dev));
	expect_none();
	fini();
}

/* Our addresses are announced again when the link comes back: neighbours may have been
 * unreachable meanwhile. */
TEST(addresses_are_announced_after_link_up)
{
	struct pkt frame;

	init();
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
	while (fake_sent(&fixture.a.port, &frame))
		free(frame.data);
	fixture.a.port.link_down = true;
	assert_false(dev_link_up(fixture.a.dev));
	fixture.a.port.link_down = false;
	assert_true(dev_link_up(fixture.a.dev));
	engine_run(fixture.a.dev->engines[0], fixture.now);
	assert_true(fake_sent(&fixture.a.port, &frame));
	assert_int_equal(frame.data[12] << 8 | frame.data[13], 0x0806);
	free(frame.data);
	fini();
}

TEST(address_change_raises_gid_change)
{
	struct net_conf net;

	init();
	net = fixture.a.dev->conf.net;
	assert_int_equal(dev_set_net(fixture.a.dev, &net), 0);
	expect_none(); /* unchanged */
	net.addr[0].gid[15] = 77;
	assert_int_equal(dev_set_net(fixture.a.dev, &net), 0);
	expect_event(IBV_EVENT_GID_CHANGE);
	net.addr[0].gid[15] = 0;
	assert_int_equal(dev_set_net(fixture.a.dev, &net), -EINVAL);
	expect_none();
	fini();
}

/* Unread events are freed with their listener. */
TEST(unread_events_are_freed_with_listener)
{
	init();
	dev_event(fixture.a.dev, IBV_EVENT_GID_CHANGE);
	dev_event(fixture.a.dev, IBV_EVENT_GID_CHANGE);
	fixture.a.port.link_down = true;
	assert_false(dev_link_up(fixture.a.dev));
	fini();
}
