/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries for extensions: of clients, which the daemon asks once for all of them, and of other
 * hosts, which it answers. */
#include "uplink_fixture.h"

#include <rte_byteorder.h>

#include "port/ext_query.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

static struct uplink_fixture u;
static uint64_t tid;

/* A datagram to QP 1. */
struct datagram {
	uint8_t sgid[16], dgid[16];
	uint8_t bytes[GSI_LEN];
	uint32_t dest_qpn, src_qpn, qkey, pad;
	bool broken; /* the ICRC is wrong */
};

static uint16_t
datagram_build(uint8_t *to, uint16_t room, const struct datagram *d)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {.dest_qpn = d->dest_qpn,
		.pkey = PKEY_DEFAULT,
		.opcode = OPCODE_UD_SEND_ONLY};
	struct pkt pkt = {.data = to, .room = room};
	struct path_hdr hdr;
	struct deth *deth;

	memcpy(addr.src_gid, d->sgid, 16);
	memcpy(addr.dst_gid, d->dgid, 16);
	memcpy(addr.src_mac, PEER_MAC, 6);
	path_hdr_init(&hdr, &addr);
	deth = (struct deth *)frame_begin(&hdr, &pkt, &bth, GSI_LEN + d->pad);
	*deth = (struct deth){.qkey = rte_cpu_to_be_32(d->qkey)};
	be24_put(deth->src_qpn, d->src_qpn);
	memcpy(frame_payload(&hdr, &pkt, bth.opcode), d->bytes, GSI_LEN);
	frame_end(&hdr, &pkt, GSI_LEN + d->pad);
	to[pkt.len - 1] ^= d->broken;
	return pkt.len;
}

/* A client's query to the other host, with a new transaction ID. */
static struct datagram
query_of(const uint8_t ours[16], const uint8_t theirs[16])
{
	const struct ext_mad mad = {.tid = ++tid, .extensions = EXT_ALL};
	struct datagram d = {.dest_qpn = GSI_QPN, .src_qpn = GSI_QPN, .qkey = GSI_QKEY};

	memcpy(d.sgid, ours, 16);
	memcpy(d.dgid, theirs, 16);
	ext_mad_write(d.bytes, EXT_MAD_QUERY, &mad);
	return d;
}

static void
client_posts(struct fixture_client *c, const struct datagram *d)
{
	uint32_t buf = c->tx.prod % CLIENT_BUFS;

	client_post(c, buf, GSI_QPN,
		datagram_build(region_tx_buf(&c->region, buf), CLIENT_BUF_SIZE, d));
	up_pass(&u);
}

static void
arrive(const struct datagram *d)
{
	uint8_t frame[1024];
	struct pkt pkt = {.data = frame, .len = datagram_build(frame, sizeof(frame), d)};

	assert_true(fake_arrive(&u.port, 0, &pkt));
	up_pass(&u);
}

/* Takes the next query that the daemon has sent. */
static bool
daemon_asked(struct datagram *d)
{
	struct pkt pkt = {.data = u.frame};
	struct pkt_view view;

	if (!up_sent(&u))
		return false;
	pkt.len = (uint16_t)u.frame_len;
	assert_int_equal(pkt_parse(&pkt, 0, &view), DROP_none);
	assert_int_equal(gsi_admit(&view), DROP_none);
	assert_int_equal(view.dest_qpn, GSI_QPN);
	view_gids(&view, d->sgid, d->dgid);
	memcpy(d->bytes, view.payload, GSI_LEN);
	return true;
}

/* The other host answers what the daemon has asked. */
static void
peer_answers(const struct datagram *asked, uint8_t status)
{
	struct datagram d = query_of(asked->dgid, asked->sgid);

	memcpy(d.bytes, asked->bytes, GSI_LEN);
	d.bytes[3] = 0x81;
	d.bytes[5] = status;
	arrive(&d);
}

/* Takes the answer that a client has received. */
static bool
client_answered(
	struct fixture_client *c, const struct datagram *query, uint32_t extensions)
{
	struct pkt pkt = {.flags = PKT_RX_IPV4_CKSUM_OK};
	uint8_t sgid[16], dgid[16];
	struct ring_desc desc;
	struct pkt_view view;
	struct ext_mad mad, asked;

	assert_true(ring_cons_refresh(&c->rx));
	if (ring_count(&c->rx) == 0)
		return false;
	desc = ring_peek(&c->rx, 0);
	pkt.data = region_rx_buf(&c->region, c->rx.cons & c->rx.mask);
	pkt.len = desc.len;
	assert_int_equal(pkt_parse(&pkt, 0, &view), DROP_none);
	assert_int_equal(gsi_admit(&view), DROP_none);
	assert_int_equal(view.dest_qpn, GSI_QPN);
	assert_memory_equal(pkt.data, u.b.sw->conf.net.mac, 6);
	view_gids(&view, sgid, dgid);
	assert_memory_equal(sgid, query->dgid, 16);
	assert_memory_equal(dgid, query->sgid, 16);
	assert_int_equal(ext_mad_read(view.payload, &mad), EXT_MAD_ANSWER);
	assert_int_equal(ext_mad_read(query->bytes, &asked), EXT_MAD_QUERY);
	assert_true(mad.tid == asked.tid);
	assert_int_equal(mad.extensions, extensions);
	ring_release(&c->rx, 1);
	return true;
}

/* The daemon's neighbour table has the other hosts. */
static void
open_resolved(void)
{
	up_open(&u);
	uplink_resolve(u.up, u.b.c[2].client, u.b.other);
	uplink_resolve(u.up, u.b.c[2].client, u.other6);
	for (unsigned i = 0; i < 3; i++) {
		up_pass(&u);
		assert_false(up_sent(&u));
	}
}

/* The daemon asks once, with its own transaction ID, and answers every client. */
TEST(clients_share_an_answer)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		for (unsigned no = 0; no < 2; no++) {
			struct datagram query, asked = {.pad = 0};
			struct ext_mad mad;

			open_resolved();
			query = v6 ? query_of(u.addr6, u.other6)
				   : query_of(u.b.addr, u.b.other);
			client_posts(&u.b.c[0], &query);
			assert_true(daemon_asked(&asked));
			assert_memory_equal(asked.sgid, query.sgid, 16);
			assert_memory_equal(asked.dgid, query.dgid, 16);
			assert_int_equal(ext_mad_read(asked.bytes, &mad), EXT_MAD_QUERY);
			assert_true(mad.tid != tid);
			assert_false(daemon_asked(&asked));
			assert_false(client_answered(&u.b.c[0], &query, 0));
			client_posts(&u.b.c[1], &query);
			assert_false(daemon_asked(&asked));
			peer_answers(&asked, no ? 0x0C : 0);
			for (unsigned i = 0; i < 2; i++) {
				query = v6 ? query_of(u.addr6, u.other6)
					   : query_of(u.b.addr, u.b.other);
				client_posts(&u.b.c[i], &query);
				assert_true(client_answered(
					&u.b.c[i], &query, no ? 0 : EXT_SACK));
				assert_int_equal(u.b.c[i].client->stats.ext_queries, 2);
			}
			assert_false(client_answered(&u.b.c[2], &query, 0));
			assert_int_equal(u.up->stats.ext_queries, 1);
			up_close(&u);
		}
	}
}

/* The daemon repeats its query by itself, and wakes up for that. */
TEST(silent_host_has_none)
{
	static const uint64_t at_ms[EXT_QUERY_TRIES + 1] = {0, 1, 30, 1000};
	struct datagram query, asked;
	uint64_t from;
	unsigned n = 0;

	open_resolved();
	query = query_of(u.b.addr, u.b.other);
	from = u.b.now;
	client_posts(&u.b.c[0], &query);
	while (u.b.now <= from + EXT_QUERY_SILENCE_NS) {
		while (daemon_asked(&asked)) {
			assert_true(u.b.now - from < at_ms[n] * NS_PER_MS + NS_PER_MS);
			n++;
		}
		u.b.now = RTE_MAX(u.b.now + NS_PER_US, uplink_deadline(u.up));
		up_pass(&u);
	}
	assert_int_equal(n, EXT_QUERY_TRIES);
	client_posts(&u.b.c[0], &query);
	assert_true(client_answered(&u.b.c[0], &query, 0));
	assert_int_equal(u.up->stats.ext_hosts_silent, 1);
	up_close(&u);
}

/* Queries do not wait for ARP, where connection requests wait: they are repeated. */
TEST(unresolved_host_is_asked_later)
{
	struct datagram query, asked;

	up_open(&u);
	query = query_of(u.b.addr, u.b.other);
	client_posts(&u.b.c[0], &query);
	assert_int_equal(u.up->neigh_queue_count, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(daemon_asked(&asked)); /* ARP */
		up_pass(&u);
	}
	u.b.now += 10 * NS_PER_MS;
	up_pass(&u);
	assert_true(daemon_asked(&asked));
	up_close(&u);
}

/* The daemon answers for its other clients. A daemon without a port sends no query. */
TEST(local_queries_need_no_port)
{
	struct datagram query, asked;
	struct uplink *up;

	open_resolved();
	query = query_of(u.b.addr, u.b.addr);
	client_posts(&u.b.c[0], &query);
	assert_true(client_answered(&u.b.c[0], &query, EXT_SACK));
	assert_false(daemon_asked(&asked));
	query = query_of(u.b.addr, u.b.other);
	up = u.b.sw->up;
	u.b.sw->up = NULL;
	client_post(&u.b.c[0], 0, GSI_QPN,
		datagram_build(
			region_tx_buf(&u.b.c[0].region, 0), CLIENT_BUF_SIZE, &query));
	sw_run(u.b.sw, u.b.now);
	u.b.sw->up = up;
	assert_int_equal(u.b.c[0].client->stats.drop_no_route, 1);
	assert_int_equal(u.b.c[0].client->stats.ext_queries, 1);
	up_close(&u);
}

static void
expect_dropped(const struct datagram *d, const uint64_t *count)
{
	struct fixture_client *c = &u.b.c[0];
	struct datagram asked;
	uint64_t before = *count;

	client_posts(c, d);
	assert_int_equal(*count, before + 1);
	assert_false(daemon_asked(&asked));
	assert_false(client_answered(c, d, 0));
	assert_int_equal(c->client->stats.ext_queries, 0);
}

/* A client sends nothing else to or from QP 1. */
TEST(other_datagrams_are_dropped)
{
	struct datagram good, d;
	struct sw_stats *stats;
	struct frame_spec f;

	open_resolved();
	stats = &u.b.c[0].client->stats;
	good = query_of(u.b.addr, u.b.other);
	d = good;
	d.dest_qpn = u.b.c[1].qpn;
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.dest_qpn = 0;
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.src_qpn = u.b.c[0].qpn;
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.qkey = 0x11111111;
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.bytes[3] = 0x81; /* an answer */
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.bytes[1] = 7; /* RDMA-CM */
	expect_dropped(&d, &stats->drop_special_qpn);
	d = good;
	d.broken = true;
	expect_dropped(&d, &stats->drop_malformed);
	d = good;
	d.pad = 100;
	expect_dropped(&d, &stats->drop_malformed);
	d = good;
	memcpy(d.sgid, u.b.other, 16);
	expect_dropped(&d, &stats->drop_source_address);
	d = query_of(u.addr6, u.other6);
	d.dgid[0] = 0xff;
	expect_dropped(&d, &stats->drop_special_qpn);
	/* To QP 1 from a QP of its own, as ever. */
	f = frame_spec_valid(&u.b);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = GSI_QPN;
	f.deth_qpn = u.b.c[0].qpn;
	memcpy(f.dgid, u.b.other, 16);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(stats->drop_special_qpn, 8);
	assert_false(up_sent(&u));
	up_close(&u);
}

/* Each client of a user asks for other hosts. Returns how many the daemon asks. */
static unsigned
hosts_asked(struct fixture_client *c, uint8_t subnet, unsigned n)
{
	struct datagram query = query_of(u.addr6, u.other6);
	uint32_t before = (uint32_t)c->client->stats.ext_queries;

	for (unsigned i = 0; i < n; i++) {
		query.dgid[12] = subnet;
		query.dgid[15] = (uint8_t)i;
		client_posts(c, &query);
		while (up_sent(&u))
			;
	}
	return (uint32_t)c->client->stats.ext_queries - before;
}

/* All clients of a user have one limit; another user has its own. */
TEST(users_have_limits)
{
	struct fixture_client *c = u.b.c;
	struct datagram query;

	open_resolved();
	client_detach(&c[2]);
	c[2].uid = 8;
	client_attach(&u.b, &c[2]);
	assert_int_equal(hosts_asked(&c[0], 1, 100), SW_EXT_QUERY_BURST);
	assert_int_equal(c[0].client->stats.drop_ext_limit, 100 - SW_EXT_QUERY_BURST);
	assert_int_equal(hosts_asked(&c[1], 2, 10), 0);
	assert_int_equal(hosts_asked(&c[2], 3, 10), 10);
	/* Hosts that are asked already, or known, cost nothing. */
	assert_int_equal(hosts_asked(&c[1], 1, 10), 10);
	query = query_of(u.addr6, u.other6);
	client_posts(&c[2], &query);
	u.b.now += SW_EXT_QUERY_NS;
	assert_int_equal(hosts_asked(&c[1], 4, 10), 1);
	/* A user that attaches anew gains nothing. */
	client_detach(&c[0]);
	client_detach(&c[1]);
	client_attach(&u.b, &c[0]);
	assert_int_equal(hosts_asked(&c[0], 5, 10), 0);
	up_close(&u);
}

/* Together, users ask for no more hosts at a time than the agent does. */
TEST(all_users_have_a_limit)
{
	struct fixture_client *c = &u.b.c[0];
	unsigned asked = 0;

	open_resolved();
	for (uint8_t uid = 1; uid < 20; uid++) {
		client_detach(c);
		c->uid = uid;
		client_attach(&u.b, c);
		asked += hosts_asked(c, uid, SW_EXT_QUERY_BURST);
	}
	assert_int_equal(asked, EXT_QUERY_OPEN);
	assert_int_equal(c->client->stats.drop_ext_limit, SW_EXT_QUERY_BURST);
	up_close(&u);
}

static void
cm_received(void *arg, const uint8_t *bytes, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now)
{
	(void)bytes;
	(void)ours;
	(void)theirs;
	assert_true(now != 0);
	++*(unsigned *)arg;
}

/* The daemon answers other hosts, with and without a connection manager, which gets all other
 * classes. */
TEST(other_hosts_are_answered)
{
	struct datagram query, answer;
	struct ext_mad mad;
	unsigned cm = 0;

	open_resolved();
	for (unsigned i = 0; i < 2; i++) {
		query = query_of(u.b.other, u.b.addr);
		arrive(&query);
		assert_true(daemon_asked(&answer));
		assert_memory_equal(answer.sgid, u.b.addr, 16);
		assert_memory_equal(answer.dgid, u.b.other, 16);
		assert_int_equal(ext_mad_read(answer.bytes, &mad), EXT_MAD_ANSWER);
		assert_true(mad.tid == tid);
		assert_int_equal(mad.extensions, EXT_SACK);
		u.up->gsi_rx = cm_received;
		u.up->gsi_arg = &cm;
	}
	assert_int_equal(cm, 0);
	assert_int_equal(u.up->stats.ext_answers, 2);
	query.bytes[1] = 7;
	arrive(&query);
	assert_int_equal(cm, 1);
	query.bytes[1] = EXT_MAD_CLASS;
	query.broken = true;
	arrive(&query);
	assert_int_equal(u.up->stats.drop[DROP_icrc], 1);
	query.broken = false;
	query.bytes[3] = 0x81;
	arrive(&query);
	assert_int_equal(u.up->stats.drop[DROP_ext_unasked], 1);
	assert_false(up_sent(&u));
	up_close(&u);
}

/* no_sack: the daemon sends no query. The answers to its clients and to other hosts name no
 * extension. */
TEST(daemon_that_is_off)
{
	const struct random_key key = {{1, 2}};
	struct datagram query, answer;
	struct ext_mad mad;

	open_resolved();
	ext_query_destroy(u.b.sw->ext);
	assert_int_equal(ext_query_create(&key, true, &u.b.sw->ext), 0);
	query = query_of(u.b.addr, u.b.other);
	client_posts(&u.b.c[0], &query);
	assert_true(client_answered(&u.b.c[0], &query, 0));
	query = query_of(u.b.addr, u.b.addr);
	client_posts(&u.b.c[0], &query);
	assert_true(client_answered(&u.b.c[0], &query, 0));
	assert_false(daemon_asked(&answer));
	query = query_of(u.b.other, u.b.addr);
	arrive(&query);
	assert_true(daemon_asked(&answer));
	assert_int_equal(ext_mad_read(answer.bytes, &mad), EXT_MAD_ANSWER);
	assert_int_equal(mad.extensions, 0);
	up_close(&u);
}
