/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of a device behind the daemon: what the daemon is told, and what the
 * device itself keeps. */
#include <errno.h>

#include "engine/dev.h"
#include "engine_link.h"

static struct fake_port port;
static struct dev *dev;
static struct event_queue events;
static struct cq cq;
static struct qp qp;
static unsigned joins, leaves;

static int
hook_qpn_take(void *arg, uint32_t *qpn)
{
	*qpn = 0x101;
	return 0;
}

static void
hook_qpn_give(void *arg, uint32_t qpn)
{
}

static int
hook_group(void *arg, uint32_t qpn, const uint8_t gid[16], bool join)
{
	assert_int_equal(qpn, 0x101);
	/* No other thread attaches or detaches between this and what the device does. */
	assert_int_equal(pthread_mutex_trylock(&dev->lock), EBUSY);
	joins += join;
	leaves += !join;
	return 0;
}

static const struct dev_hooks hooks = {
	.qpn_take = hook_qpn_take, .qpn_give = hook_qpn_give, .group = hook_group};

static void
client_open(void)
{
	struct dev_conf conf = {.hooks = &hooks,
		.name = "test",
		.mtu = 1500,
		.qpn_base = 0x100,
		.max_qp = 16};
	struct net_addr *addr = &conf.net.addr[conf.net.addr_count++];
	struct qp_conf qp_conf = {.type = IBV_QPT_UD,
		.send_cq = &cq,
		.recv_cq = &cq,
		.pd = 1,
		.max_send_wr = 1,
		.max_recv_wr = 1};

	joins = leaves = 0;
	fake_init(&port, 1, 1);
	assert_int_equal(gid_parse("192.0.2.1/24", addr->gid, &addr->prefix_len), 0);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(cq_init(&cq, &alloc_plain, 16, &events, NULL), 0);
	assert_int_equal(dev_qp_init(dev, &qp, &qp_conf, 0, &events, NULL), 0);
}

static void
client_close(void)
{
	dev_qp_stop(dev, &qp, 0);
	dev_qp_fini(dev, &qp);
	cq_fini(&cq);
	event_queue_fini(&events);
	dev_destroy(dev);
	fake_fini(&port);
}

/* No engine of the device sends reports, so none can be waited for. */
TEST(groups_of_a_client_take_no_place_when_left)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 239};

	client_open();
	for (unsigned i = 0; i < 3 * NET_MAX_GROUPS; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		assert_int_equal(dev_qp_attach(dev, &qp, gid), 0);
		assert_int_equal(net_deadline(dev->net), TIME_NEVER);
		assert_int_equal(dev_qp_detach(dev, &qp, gid), 0);
	}
	assert_int_equal(joins, 3 * NET_MAX_GROUPS);
	assert_int_equal(leaves, joins);
	client_close();
}

/* The daemon charges a membership to the user: one that came to nothing is ended. */
TEST(refused_attachment_is_no_membership)
{
	const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9};

	client_open();
	dev->group_count = DEV_MAX_GROUPS;
	assert_int_equal(dev_qp_attach(dev, &qp, gid), -ENOMEM);
	assert_int_equal(joins, 1);
	assert_int_equal(leaves, 1);
	dev->group_count = 0;
	dev->attached_count = DEV_MAX_ATTACHED;
	assert_int_equal(dev_qp_attach(dev, &qp, gid), -ENOMEM);
	assert_int_equal(joins, 2);
	assert_int_equal(leaves, 2);
	dev->attached_count = 0;
	/* A second attachment has no effect, even if there is no room. */
	assert_int_equal(dev_qp_attach(dev, &qp, gid), 0);
	dev->group_count += DEV_MAX_GROUPS;
	assert_int_equal(dev_qp_attach(dev, &qp, gid), 0);
	dev->group_count -= DEV_MAX_GROUPS;
	assert_int_equal(leaves, 2);
	assert_int_equal(dev_qp_detach(dev, &qp, gid), 0);
	assert_int_equal(leaves, 3);
	client_close();
}
