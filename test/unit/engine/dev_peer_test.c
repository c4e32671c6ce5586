/* SPDX-License-Identifier: BSD-3-Clause */
/* When the daemon is told the peer of a client's QP. */
#include <errno.h>
#include <string.h>

#include "engine/engine_state.h"
#include "engine_link.h"

static struct engine_link fixture;
static struct link_qp a[1], b[1];

static const struct link_qp_conf plain = {.engine = -1};

static uint32_t cleared_qpn;

static void
hook_peer_clear(void *arg, uint32_t qpn)
{
	cleared_qpn = qpn;
}

static int
hook_peer_set(void *arg, uint32_t qpn, const uint8_t sgid[16], const uint8_t dgid[16],
	uint32_t dest_qpn)
{
	cleared_qpn = 0;
	return 0;
}

static struct dev *
qps_open(void)
{
	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a[0], &plain);
	link_qp_create(&fixture.b, &b[0], &plain);
	return fixture.a.dev;
}

static void
qps_close(void)
{
	fixture.a.dev->conf.hooks = NULL;
	link_qp_destroy(&a[0]);
	link_qp_destroy(&b[0]);
	engine_link_fini(&fixture);
}

/* The daemon is told. It then refuses all packets to the peer. */
TEST(reset_ends_the_registration_of_the_peer)
{
	static const struct dev_hooks hooks = {
		.peer_set = hook_peer_set, .peer_clear = hook_peer_clear};
	static const struct qp_attr error = {.state = IBV_QPS_ERR},
				    reset = {.state = IBV_QPS_RESET};
	struct dev *dev;

	dev = qps_open();
	dev->conf.hooks = &hooks;
	cleared_qpn = 1;
	link_qp_connect(&a[0], &b[0], &plain);
	assert_int_equal(dev_qp_modify(dev, a[0].qp, &error, IBV_QP_STATE), 0);
	assert_int_equal(cleared_qpn, 0);
	assert_int_equal(dev_qp_modify(dev, a[0].qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(cleared_qpn, a[0].qp->qpn);
	qps_close();
}

/* A refused modification does not change which peer the daemon knows. */
TEST(refused_modify_keeps_the_registration_of_the_peer)
{
	static const struct dev_hooks hooks = {
		.peer_set = hook_peer_set, .peer_clear = hook_peer_clear};
	struct qp_attr attr;
	struct dev *dev;

	dev = qps_open();
	link_qp_connect(&a[0], &b[0], &plain);
	dev->conf.hooks = &hooks;
	attr = link_qp_attr(&a[0], &b[0], &plain);
	attr.state = IBV_QPS_RTR;
	cleared_qpn = 1;
	/* RTS -> RTR is no transition */
	assert_int_equal(
		dev_qp_modify(dev, a[0].qp, &attr, IBV_QP_STATE | IBV_QP_AV), -EINVAL);
	assert_int_equal(cleared_qpn, 1);
	qps_close();
}

static enum ibv_qp_state registered_in;
static int registration;

static int
hook_peer_set_watch(void *arg, uint32_t qpn, const uint8_t sgid[16],
	const uint8_t dgid[16], uint32_t dest_qpn)
{
	registered_in = (enum ibv_qp_state)a[0].qp->state;
	return registration;
}

/* The daemon delivers what has waited for a QP once it is told its peer: the QP is in RTR then. For a
 * peer on another host, whose packets do not wait, it is told before. */
TEST(peer_of_this_daemon_is_registered_in_rtr)
{
	static const struct dev_hooks hooks = {
		.peer_set = hook_peer_set_watch, .peer_clear = hook_peer_clear};
	static const struct qp_attr init = {.state = IBV_QPS_INIT, .port_num = 1},
				    reset = {.state = IBV_QPS_RESET};
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct qp_attr attr;
	struct dev *dev;

	dev = qps_open();
	dev->conf.hooks = &hooks;
	for (unsigned own = 0; own < 2; own++) {
		attr = link_qp_attr(&a[0], &b[0], &plain);
		attr.state = IBV_QPS_RTR;
		if (own)
			memcpy(attr.path.dgid, attr.path.sgid, 16);
		assert_int_equal(dev_qp_modify(dev, a[0].qp, &init,
					 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS),
			0);
		for (registration = -EINVAL;; registration = 0) {
			assert_int_equal(
				dev_qp_modify(dev, a[0].qp, &attr, rtr), registration);
			assert_int_equal(registered_in, own ? IBV_QPS_RTR : IBV_QPS_INIT);
			if (registration == 0)
				break;
			/* One that the daemon refuses can be tried again. */
			assert_int_equal(a[0].qp->state, IBV_QPS_INIT);
		}
		assert_int_equal(a[0].qp->state, IBV_QPS_RTR);
		assert_int_equal(dev_qp_modify(dev, a[0].qp, &reset, IBV_QP_STATE), 0);
	}
	qps_close();
}
