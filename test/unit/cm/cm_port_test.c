/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager on QP 1 of two devices, with engines, ARP and a lossy wire. */
#include <errno.h>
#include <string.h>

#include "cm/cm_port.h"
#include "engine_link.h"

#define SERVICE cma_service_id(CMA_PS_TCP, 7471)

static struct engine_link fixture;

static struct cm_port *
cm_port_opened(struct link_side *s)
{
	struct cm_port *port, *again;
	struct cm_conf conf;

	cm_conf_default(&conf);
	conf.random.word[0] = (uintptr_t)s;
	conf.max_conns = 8;
	assert_int_equal(cm_port_open(s->dev, &conf, fixture.now, &port), 0);
	assert_int_equal(cm_port_open(s->dev, &conf, fixture.now, &again), -EBUSY);
	conf.max_conns = 0;
	assert_int_equal(cm_port_open(s->dev, &conf, fixture.now, &again), -EINVAL);
	return port;
}

static struct cm_event
event(struct cm_port *port, enum cm_event_type type)
{
	struct cm *cm = cm_port_lock(port);
	struct cm_event e;

	assert_true(cm_next_event(cm, &e));
	assert_int_equal(e.type, type);
	cm_port_unlock(port);
	return e;
}

static struct cm_conn *
connect_to(struct cm_port *port, unsigned from, unsigned to, unsigned gid)
{
	struct link_side *sides[2] = {&fixture.a, &fixture.b};
	struct cm_request r = {.service_id = SERVICE,
		.sport = 1,
		.qp = {.qpn = 0x100 + from, .path_mtu = 3}};
	struct cm_conn *conn;

	memcpy(r.path.sgid, sides[from]->dev->gids[gid], 16);
	memcpy(r.path.dgid, sides[to]->dev->gids[gid], 16);
	assert_int_equal(cm_connect(cm_port_lock(port), &r, NULL, fixture.now, &conn), 0);
	cm_port_unlock(port);
	return conn;
}

/* Over IPv4 and IPv6, between two devices and within one. */
TEST(connects_over_ipv4_and_ipv6)
{
	const struct cm_qp qp = {.qpn = 0x200};

	for (unsigned what = 0; what < 4; what++) {
		unsigned to = what & 1;
		struct cm_port *a, *b;
		struct cm_listener *listener;
		struct cm_conn *conn, *passive;

		engine_link_init(&fixture, NULL);
		a = cm_port_opened(&fixture.a);
		b = to == 0 ? a : cm_port_opened(&fixture.b);
		assert_int_equal(
			cm_listen(cm_port_lock(b), SERVICE, NULL, 4, NULL, &listener), 0);
		cm_port_unlock(b);
		conn = connect_to(a, 0, to, what / 2);
		engine_link_advance(&fixture, NS_PER_SEC);
		passive = event(b, CM_EVENT_REQUEST).conn;
		cm_port_lock(b);
		assert_int_equal(cm_accept(passive, &qp, NULL, 0, fixture.now), 0);
		cm_port_unlock(b);
		engine_link_advance(&fixture, NS_PER_SEC);
		assert_ptr_equal(event(a, CM_EVENT_REPLY).conn, conn);
		cm_port_lock(a);
		assert_int_equal(cm_confirm(conn, NULL, 0, fixture.now), 0);
		cm_port_unlock(a);
		engine_link_advance(&fixture, NS_PER_SEC);
		assert_ptr_equal(event(b, CM_EVENT_ESTABLISHED).conn, passive);
		cm_port_lock(a);
		cm_release(conn, fixture.now);
		cm_port_unlock(a);
		engine_link_advance(&fixture, NS_PER_SEC);
		event(b, CM_EVENT_DISCONNECTED);
		cm_port_lock(b);
		cm_release(passive, fixture.now);
		cm_port_unlock(b);
		engine_link_advance(&fixture, 10 * NS_PER_SEC);
		assert_int_equal(cm_in_use(cm_port_lock(a)), 0);
		cm_port_unlock(a);
		assert_int_equal(cm_in_use(cm_port_lock(b)), 0);
		cm_port_unlock(b);
		cm_port_close(a);
		if (b != a)
			cm_port_close(b);
		engine_link_fini(&fixture);
	}
}

/* The engine runs the manager's timers: an unanswered REQ is resent, and given up in the
 * end. */
TEST(engine_runs_the_cm_timers)
{
	struct cm_port *a;
	struct cm_conn *conn;
	struct cm *cm;

	engine_link_init(&fixture, NULL);
	a = cm_port_opened(&fixture.a);
	conn = connect_to(a, 0, 1, 0);
	engine_link_advance(&fixture, 20 * NS_PER_SEC);
	cm = cm_port_lock(a);
	assert_int_equal(cm_stats_of(cm)->resent, 3); /* 6.4 s apart */
	cm_port_unlock(a);
	engine_link_advance(&fixture, 100 * NS_PER_SEC);
	event(a, CM_EVENT_UNREACHABLE);
	cm_port_lock(a);
	cm_release(conn, fixture.now);
	cm_port_unlock(a);
	cm_port_close(a);
	engine_link_fini(&fixture);
}
