/* SPDX-License-Identifier: BSD-3-Clause */
/* Which extensions peers understand: two devices ask each other over QP 1, and a client of the
 * daemon sends its queries to that. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_gsi.h"
#include "engine/engine_state.h"
#include "engine/manual_progress.h"
#include "engine_link.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

static struct engine_link fixture;
static struct link_qp a, b;

static const struct link_qp_conf plain = {.engine = 0, .wr = 64};

static void
link_open(void)
{
	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	link_qp_message(&a, &b, 1); /* resolves the neighbours */
	engine_link_drain(&fixture);
}

static void
link_close(void)
{
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
}

/* A packet of the QP was lost. */
static void
loss(const struct link_qp *q)
{
	peer_ext_ask(&q->qp->sched.engine->peers, q->qp->peer, q->qp->path.sgid);
}

static struct port_stats
stats_of(struct link_side *s)
{
	struct port_stats stats;

	dev_stats(s->dev, &stats);
	return stats;
}

/* With no user of QP 1 on either side. */
TEST(peer_is_known_after_a_loss)
{
	struct peers *peers;

	link_open();
	peers = &fixture.a.dev->engines[0]->peers;
	engine_link_advance(&fixture, 100 * NS_PER_MS);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_UNKNOWN);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 0);
	loss(&a);
	loss(&a);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_ASK);
	engine_link_drain(&fixture);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_KNOWN);
	assert_int_equal(a.qp->peer->extensions, EXT_SACK);
	assert_true(TAILQ_EMPTY(&peers->asking));
	assert_int_equal(stats_of(&fixture.a).ext_queries, 1);
	assert_int_equal(stats_of(&fixture.a).ext_hosts_some, 1);
	assert_int_equal(stats_of(&fixture.b).ext_answers, 1);
	assert_int_equal(b.qp->peer->ext_state, PEER_EXT_UNKNOWN);
	/* Known for good. */
	engine_link_advance(&fixture, 2 * EXT_QUERY_KEPT_NS);
	loss(&a);
	engine_link_drain(&fixture);
	assert_int_equal(a.qp->peer->extensions, EXT_SACK);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 1);
	link_close();
}

/* The other host sleeps through everything: it is asked four times, with the right timing,
 * although nothing else happens, and not again for a minute. */
TEST(silent_peer_has_none)
{
	link_open();
	fixture.b.deaf = true;
	loss(&a);
	engine_link_advance(&fixture, 500 * NS_PER_MS);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 3);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_ASK);
	assert_int_equal(a.qp->peer->extensions, 0);
	engine_link_advance(&fixture, 3 * NS_PER_SEC);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 4);
	/* The next pass finds the answer. */
	engine_link_pass(&fixture);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_NONE);
	assert_int_equal(a.qp->peer->extensions, 0);
	assert_int_equal(stats_of(&fixture.a).ext_hosts_silent, 1);
	fixture.b.deaf = false;
	loss(&a);
	assert_true(TAILQ_FIRST(&a.qp->sched.engine->peers.asking)->ext_asked);
	engine_link_advance(&fixture, 10 * NS_PER_MS);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_NONE);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 4);
	engine_link_advance(&fixture, EXT_QUERY_KEPT_NS);
	loss(&a);
	engine_link_advance(&fixture, 20 * NS_PER_MS);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_KNOWN);
	assert_int_equal(a.qp->peer->extensions, EXT_SACK);
	link_close();
}

/* The QP takes the place of an earlier one. */
static void
connect_anew(void)
{
	link_qp_create(&fixture.a, &a, &plain);
	assert_int_equal(link_qp_modify(&b, IBV_QPS_RESET), 0);
	link_qp_connect(&a, &b, &plain);
}

/* QPs that end while their peer is asked. */
TEST(peer_ends_while_it_is_asked)
{
	struct peers *peers;

	link_open();
	peers = &fixture.a.dev->engines[0]->peers;
	loss(&a);
	link_qp_destroy(&a);
	assert_true(TAILQ_EMPTY(&peers->asking));
	connect_anew();
	fixture.b.deaf = true;
	loss(&a);
	engine_link_drain(&fixture);
	link_qp_destroy(&a);
	assert_true(TAILQ_EMPTY(&peers->asking));
	fixture.b.deaf = false;
	engine_link_advance(&fixture, 3 * NS_PER_SEC);
	connect_anew();
	/* The agent has learned it meanwhile. */
	loss(&a);
	engine_link_pass(&fixture);
	assert_int_equal(a.qp->peer->extensions, EXT_SACK);
	link_close();
}

struct user {
	unsigned count;
	bool sent;
	uint64_t due;
};

static void
on_rx(void *arg, const struct gsi_msg *msg, uint64_t now)
{
	struct user *u = arg;

	(void)now;
	u->count++;
	assert_int_not_equal(msg->bytes[1], EXT_MAD_CLASS);
}

static bool
on_tx(void *arg, struct gsi_msg *msg, uint64_t now)
{
	struct user *u = arg;

	(void)now;
	/* Not called before its time. */
	assert_true(u->due == 0 || u->sent);
	u->due = TIME_NEVER;
	if (u->sent)
		return false;
	u->sent = true;
	memcpy(msg->sgid, fixture.a.dev->gids[0], 16);
	memcpy(msg->dgid, fixture.b.dev->gids[0], 16);
	memset(msg->bytes, 7, GSI_LEN);
	msg->answer = false;
	return true;
}

/* The agent works beside the connection manager, and that is called as without it. */
TEST(user_of_qp1_gets_the_other_classes)
{
	struct user ua = {.due = TIME_NEVER}, ub = {.due = TIME_NEVER};
	struct gsi_user user = {.rx = on_rx, .tx = on_tx, .arg = &ua, .due = &ua.due};

	link_open();
	assert_int_equal(dev_gsi_set(fixture.a.dev, GSI_USER_CM, &user), 0);
	user.arg = &ub;
	user.due = &ub.due;
	assert_int_equal(dev_gsi_set(fixture.b.dev, GSI_USER_CM, &user), 0);
	loss(&a);
	engine_link_drain(&fixture);
	assert_int_equal(a.qp->peer->extensions, EXT_SACK);
	assert_int_equal(ua.count + ub.count, 0);
	assert_false(ua.sent || ub.sent);
	ua.due = 0;
	engine_link_drain(&fixture);
	assert_int_equal(ub.count, 1);
	dev_gsi_clear(fixture.a.dev, GSI_USER_CM);
	assert_true(gsi_due(fixture.a.dev->gsi) == TIME_NEVER);
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	link_close();
}

/* no_sack and ROCADE_OFF=sack: the host sends no query, and its answers name no extension. */
TEST(host_that_is_off)
{
	setenv("ROCADE_OFF", "sack", 1);
	link_open();
	unsetenv("ROCADE_OFF");
	loss(&a);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_UNKNOWN);
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(stats_of(&fixture.a).ext_queries, 0);
	/* As if this end were on. */
	a.qp->sched.engine->peers.ext_off = false;
	ext_query_destroy(fixture.a.dev->gsi->ext);
	assert_int_equal(ext_query_create(&(struct random_key){{3, 4}}, false,
				 &fixture.a.dev->gsi->ext),
		0);
	loss(&a);
	engine_link_drain(&fixture);
	engine_link_pass(&fixture);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_NONE);
	assert_int_equal(stats_of(&fixture.a).ext_hosts_none, 1);
	link_close();
}

/* With several paths a QP asks at once, and spreads its packets when the answer has come. */
TEST(several_paths_ask_before_a_loss)
{
	engine_link_init(&fixture, &(struct engine_link_conf){.paths = 2});
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	assert_int_not_equal(a.qp->multipath, 0);
	link_qp_connect(&a, &b, &plain);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_ASK);
	engine_link_drain(&fixture);
	engine_link_advance(&fixture, 2 * NS_PER_MS);
	assert_int_equal(a.qp->peer->ext_state, PEER_EXT_KNOWN);
	assert_int_equal(b.qp->peer->ext_state, PEER_EXT_KNOWN);
	for (unsigned i = 0; i < 4; i++)
		link_qp_message(&a, &b, 1);
	engine_link_drain(&fixture);
	assert_int_equal(stats_of(&fixture.a).spread, 2);
	assert_int_equal(stats_of(&fixture.b).spread, 0);
	link_close();
}

/* QPs of the second engine, and the answer arrives at any engine. */
TEST(engines_share_what_is_known)
{
	const struct engine_link_conf conf = {.engines = {2, 2}};
	struct link_qp_conf second = plain;
	struct link_qp a2, b2;

	second.engine = 1;
	for (unsigned queue = 0; queue < 2; queue++) {
		engine_link_init(&fixture, &conf);
		fixture.a.queue = fixture.b.queue = queue;
		link_qp_create(&fixture.a, &a, &plain);
		link_qp_create(&fixture.b, &b, &plain);
		link_qp_connect(&a, &b, &plain);
		link_qp_create(&fixture.a, &a2, &second);
		link_qp_create(&fixture.b, &b2, &second);
		link_qp_connect(&a2, &b2, &second);
		link_qp_message(&a2, &b2, 1);
		engine_link_drain(&fixture);
		assert_ptr_not_equal(a.qp->peer, a2.qp->peer);
		loss(&a2);
		engine_link_advance(&fixture, NS_PER_MS);
		assert_int_equal(a2.qp->peer->extensions, EXT_SACK);
		assert_int_equal(a.qp->peer->extensions, 0);
		loss(&a);
		engine_link_pass(&fixture);
		assert_int_equal(a.qp->peer->extensions, EXT_SACK);
		assert_int_equal(stats_of(&fixture.a).ext_queries, 1);
		link_qp_destroy(&a2);
		link_qp_destroy(&b2);
		link_close();
	}
}

static struct peer *
stray_peer(struct peers *peers, unsigned number)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 192, 0, 2};

	gid[15] = (uint8_t)(10 + number);
	return peer_get(peers, gid, false);
}

/* A pass asks about a few peers only, those first that it has not asked about. */
TEST(many_peers_are_asked_in_turn)
{
	struct peer *peer[200];
	struct engine *e;
	unsigned asked = 0;

	link_open();
	e = fixture.a.dev->engines[0];
	for (unsigned i = 0; i < RTE_DIM(peer); i++) {
		peer[i] = stray_peer(&e->peers, i);
		peer_ext_ask(&e->peers, peer[i], a.qp->path.sgid);
	}
	engine_link_pass(&fixture);
	for (unsigned i = 0; i < RTE_DIM(peer); i++)
		asked += peer[i]->ext_asked;
	assert_int_equal(asked, 16);
	assert_true(engine_deadline(e) == 0);
	for (unsigned i = 0; i < 12; i++)
		engine_link_pass(&fixture);
	for (unsigned i = 0; i < RTE_DIM(peer); i++)
		assert_true(peer[i]->ext_asked);
	/* It does not keep looking until something changes. */
	asked = (unsigned)(TAILQ_FIRST(&e->peers.asking) - peer[0]);
	engine_link_pass(&fixture);
	assert_int_equal(asked, (unsigned)(TAILQ_FIRST(&e->peers.asking) - peer[0]));
	/* More than may be open: all are asked in the end. */
	for (unsigned i = 0; i < 3000; i++)
		engine_link_advance(&fixture, 5 * NS_PER_MS);
	for (unsigned i = 0; i < RTE_DIM(peer); i++) {
		assert_int_equal(peer[i]->ext_state, PEER_EXT_NONE);
		peer_put(&e->peers, peer[i]);
	}
	assert_int_equal(stats_of(&fixture.a).ext_hosts_silent, RTE_DIM(peer));
	link_close();
}

/* ---- Behind the daemon ---- */

static int
qpn_take(void *arg, uint32_t *qpn)
{
	(void)arg;
	*qpn = 0x77;
	return 0;
}

static void
qpn_give(void *arg, uint32_t qpn)
{
	(void)arg;
	(void)qpn;
}

static int
peer_set(void *arg, uint32_t qpn, const uint8_t sgid[16], const uint8_t dgid[16],
	uint32_t dest_qpn)
{
	(void)arg;
	(void)qpn;
	(void)sgid;
	(void)dgid;
	(void)dest_qpn;
	return 0;
}

static const struct dev_hooks hooks = {
	.qpn_take = qpn_take, .qpn_give = qpn_give, .peer_set = peer_set};

static unsigned wakes;

static void
count_wake(void *arg)
{
	(void)arg;
	wakes++;
}

/* Sends the frame back from the host that it went to, as an answer. */
static void
answer_arrive(struct fake_port *port, const struct pkt *frame)
{
	struct path_addr addr = {.hop_limit = 64};
	struct pkt answer = {.data = malloc(512), .room = 512};
	uint8_t bytes[GSI_LEN];
	struct pkt_view view;

	assert_int_equal(pkt_parse(frame, 0, &view), DROP_none);
	assert_int_equal(gsi_admit(&view), DROP_none);
	memcpy(bytes, view.payload, GSI_LEN);
	bytes[3] = 0x81;
	view_gids(&view, addr.dst_gid, addr.src_gid);
	memcpy(addr.dst_mac, port->port.mac, 6);
	gsi_frame_build(&answer, &addr, 0, bytes);
	assert_true(fake_arrive(port, 0, &answer));
	free(answer.data);
}

/* A client's engine sends its queries from QP 1, without the next hop's MAC. Its progress
 * thread wakes up for the next one. */
TEST(client_of_the_daemon_asks)
{
	const struct engine_progress_thread progress = {
		.wake = count_wake, .asleep = &(uint32_t){0}};
	struct dev_conf conf = {
		.hooks = &hooks, .name = "client", .mtu = 4200, .max_qp = 64};
	struct net_addr *addr = &conf.net.addr[conf.net.addr_count++];
	uint64_t now = 10 * NS_PER_SEC;
	struct fake_port port;
	struct engine *e;
	struct peer *peer;
	struct pkt frame;
	struct dev *dev;

	assert_int_equal(gid_parse("192.0.2.1/24", addr->gid, &addr->prefix_len), 0);
	fake_init(&port, 1, 1);
	assert_int_equal(dev_create(&conf, &port.port, &alloc_plain, &dev), 0);
	e = dev->engines[0];
	engine_set_progress_thread(e, &progress);
	peer = stray_peer(&e->peers, 1);
	engine_run(e, now);
	assert_true(engine_sleep_until(e) == TIME_NEVER);
	peer_ext_ask(&e->peers, peer, dev->gids[0]);
	assert_true(engine_deadline(e) == 0);
	engine_run(e, now);
	assert_true(e->earliest_ns == now + 1 * NS_PER_MS);
	assert_true(engine_sleep_until(e) == now + 1 * NS_PER_MS);
	for (unsigned i = 0; i < 2; i++) {
		if (i != 0) {
			engine_run(e, now);
			assert_false(fake_sent(&port, &frame));
			now += 1 * NS_PER_MS;
			engine_run(e, now);
		} else {
			assert_int_equal(fake_sent_count(&port), 1);
		}
		assert_true(fake_sent(&port, &frame));
		assert_int_equal(PKT_TX_QPN(&frame), GSI_QPN);
		assert_memory_equal(frame.data, "\0\0\0\0\0\0", 6);
		if (i == 0)
			free(frame.data);
	}
	answer_arrive(&port, &frame);
	free(frame.data);
	engine_run(e, now);
	assert_int_equal(peer->extensions, EXT_SACK);
	assert_true(engine_sleep_until(e) == TIME_NEVER);
	assert_int_equal(dev_gsi_set(dev, GSI_USER_CM, &(struct gsi_user){.rx = on_rx}),
		-EOPNOTSUPP);
	peer_put(&e->peers, peer);
	dev_destroy(dev);
	fake_fini(&port);
}
