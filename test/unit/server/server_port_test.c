/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon with a port: its owner, and what is sent at the end. */
#include <pthread.h>

#include "server_fixture.h"

#include "base/base_alloc.h"
#include "mem/sge.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/psn.h"
#include "../../lib/fake_port.h"

#define GROUP "239.1.2.3"
#define POSTED 200 /* more than the uplink's TX backlog holds */

static struct rocade_daemon_port *
port_make_queues(struct fake_port *fake, uint32_t mtu, unsigned queues)
{
	struct rocade_daemon_port *port = alloc_get(&alloc_plain, "port", sizeof(*port));

	assert_non_null(port);
	fake_init(fake, queues, 9);
	port->port = fake->port;
	port->mtu = mtu;
	return port;
}

static struct rocade_daemon_port *
port_make(struct fake_port *fake, uint32_t mtu)
{
	return port_make_queues(fake, mtu, 1);
}

TEST(failed_create_leaves_the_port_open)
{
	struct fake_port fake;
	struct rocade_daemon_conf c = {.size = sizeof(c),
		.socket = "/nonexistent/socket",
		.addresses = "192.0.2.1/24",
		.impair = {.loss_ppm = 1},
		.port = port_make(&fake, 1500)};
	struct rocade_daemon *d;

	assert_int_equal(rocade_daemon_create(&c, &d), ENOENT);
	assert_false(fake.closed);
	rocade_daemon_close_port(c.port);
	fake_fini(&fake);
}

TEST(device_has_mac_and_mtu_of_the_port)
{
	struct fake_port fake;
	struct fixture_client c;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.port = port_make(&fake, 1500)});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(c.reply.device.mtu, 1500);
	assert_int_equal(c.reply.device.local, 0);
	assert_memory_equal(c.reply.device.net.mac, fake.port.mac, 6);
	assert_int_equal(c.region.daemon->link_down, 0);
	client_detach(&b, &c);
	fixture_close(&b);
	fake_fini(&fake);
}

/* Builds a datagram from qpn to the group; returns its length. */
static uint16_t
datagram_build(const struct fixture_client *c, uint32_t qpn, uint8_t *to)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {.dest_qpn = 0xFFFFFF,
		.pkey = PKEY_DEFAULT,
		.opcode = OPCODE_UD_SEND_ONLY};
	struct pkt pkt = {.data = to, .room = (uint16_t)c->reply.geom.buf_size};
	struct path_hdr hdr;
	uint8_t *ext;

	memcpy(addr.src_gid, c->reply.device.net.addr[0].gid, 16);
	assert_int_equal(gid_parse(GROUP, addr.dst_gid, NULL), 0);
	path_hdr_init(&hdr, &addr);
	ext = frame_begin(&hdr, &pkt, &bth, 0);
	memset(ext, 0, op_rows[bth.opcode].ext_len);
	be24_put(((struct deth *)ext)->src_qpn, qpn);
	frame_end(&hdr, &pkt, 0);
	return pkt.len;
}

/* Posts datagrams, and returns how many of them the port has sent when the daemon has ended. *reports: of
 * IGMP. */
static unsigned
posted_are_sent(struct rocade_daemon_conf conf, unsigned *reports)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	unsigned datagrams = 0;
	struct sw_reply reply;
	struct fake_port fake;
	struct fixture_client c;
	struct ring_prod tx;
	struct ring_cons rx;
	struct pkt frame;
	struct server_fixture b;
	uint32_t qpn;

	*reports = 0;
	conf.client_ring = 256;
	conf.port = port_make(&fake, 1500);
	fake.q[0].tx_take = 8; /* of a burst: sending takes several passes */
	fixture_open(&b, conf);
	assert_int_equal(client_attach(&b, &c), 0);
	assert_true(client_call(&b, c.fd, &req, &reply, NULL));
	qpn = reply.qpn;
	req = (struct sw_request){.type = SW_GROUP_JOIN, .qpn = qpn};
	assert_int_equal(gid_parse(GROUP, req.dgid, NULL), 0);
	assert_true(client_call(&b, c.fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	region_client_rings(&c.region, &tx, &rx);
	for (uint32_t i = 0; i < POSTED; i++) {
		struct ring_desc desc = {.buf = i, .qpn = qpn};

		desc.len = datagram_build(&c, qpn, region_tx_buf(&c.region, i));
		ring_put(&tx, &desc);
	}
	ring_publish(&tx);
	/* The daemon ends before its client. */
	rocade_daemon_destroy(b.d);
	assert_true(fake.closed);
	while (fake_sent(&fake, &frame)) {
		datagrams += frame.data[0] == 0x01 && frame.data[23] == 17;
		*reports += frame.data[0] == 0x01 && frame.data[23] == 2;
		free(frame.data);
	}
	client_unmap(&c);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(c.fds[i]);
	close(c.fd);
	assert_int_equal(rmdir(b.dir), 0);
	fds_await(&b);
	fake_fini(&fake);
	return datagrams;
}

TEST(posted_packets_are_sent_before_close)
{
	unsigned reports;

	assert_int_equal(
		posted_are_sent((struct rocade_daemon_conf){0}, &reports), POSTED);
	/* the join, and the leave if it was sent in time */
	assert_in_range(reports, 1, 2);
}

TEST(packets_of_the_port_are_impaired)
{
	struct rocade_daemon_conf conf = {.impair = {.loss_ppm = 1000000}};
	unsigned reports;

	assert_int_equal(posted_are_sent(conf, &reports), 0);
	assert_int_equal(reports, 0);
	/* Frames that are held back leave before the port is closed. */
	conf.impair = (struct rocade_impair){.reorder_ppm = 1000000};
	assert_int_equal(posted_are_sent(conf, &reports), POSTED);
	conf.impair = (struct rocade_impair){.loss_ppm = 200000, .seed = 3};
	assert_in_range(posted_are_sent(conf, &reports), POSTED / 2, POSTED - 1);
}

/* Also what comes. The state shows the rates and what has been lost. */
TEST(received_packets_are_impaired_and_counted)
{
	struct rocade_daemon_conf conf = {.impair = {.loss_ppm = 1000000, .seed = 4}};
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_DEVICE};
	static struct sw_data_reply status;
	struct pkt in = {.data = (uint8_t[64]){0xff}, .len = 64};
	struct fixture_client c;
	struct server_fixture b;
	struct fake_port fake;

	conf.port = port_make(&fake, 1500);
	fixture_open(&b, conf);
	assert_true(fake_arrive(&fake, 0, &in));
	assert_int_equal(uplink_rx(b.d->up, 1), 0);
	assert_int_equal(b.d->up->stats.rx_packets, 0);
	assert_int_equal(client_attach(&b, &c), 0);
	/* The port is impaired, not what its clients send. */
	assert_false(impair_is_on(&c.reply.device.impair));
	assert_int_equal(client_fetch(&b, c.fd, &req, &status), 0);
	assert_non_null(strstr((char *)status.bytes,
		"\"impair\": {\"loss_ppm\": 1000000, \"duplicate_ppm\": 0, "
		"\"reorder_ppm\": 0, \"corrupt_ppm\": 0, \"seed\": 4, \"lost\": 1, "));
	client_detach(&b, &c);
	fixture_close(&b);
	fake_fini(&fake);
}

static void *
serve(void *d)
{
	assert_int_equal(rocade_daemon_run(d), 0);
	return NULL;
}

/* Number of frames that the daemon has not received yet. */
static unsigned
frames_waiting(struct fake_port *fake)
{
	unsigned count;

	pthread_mutex_lock(&fake->lock);
	count = fake->q[0].rx.count;
	pthread_mutex_unlock(&fake->lock);
	return count;
}

/* The daemon polls the port, or naps between polls. It can run again after a stop. */
TEST(daemon_can_run_again)
{
	struct rocade_daemon_conf c = {.addresses = "192.0.2.1/24"};
	struct fake_port fake;
	pthread_t thread;
	struct server_fixture b;

	c.port = port_make(&fake, 1500);
	fixture_open(&b, c);
	for (unsigned i = 0; i < 3; i++) {
		struct pkt in = {.data = (uint8_t[64]){0xff}, .len = 64};

		c.size = sizeof(c);
		c.sleep_us = i * 500;
		assert_int_equal(rocade_daemon_change(b.d, &c), 0);
		assert_int_equal(pthread_create(&thread, NULL, serve, b.d), 0);
		assert_true(fake_arrive(&fake, 0, &in));
		await(frames_waiting(&fake) == 0);
		rocade_daemon_stop(b.d);
		pthread_join(thread, NULL);
		assert_int_equal(b.d->up->stats.rx_packets, i + 1);
	}
	fixture_close(&b);
	fake_fini(&fake);
}

/* The largest tables. */
TEST(sizes_of_tables_are_configured)
{
	static const char *const limits[] = {
		"\"neighbours\": {\"all\": 65536, \"user\": 49152, ",
		"\"unresolved_neighbours\": {\"all\": 65536, \"user\": 256, ",
		"\"cm_ids\": {\"all\": 65536, ",
		"\"cm_ports\": {\"all\": 65536, ",
		"\"cm_connections\": {\"all\": 65536, ",
	};
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_DEVICE};
	static struct sw_data_reply status;
	struct fake_port fake;
	struct fixture_client c;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.port = port_make(&fake, 1500),
				 .neighbours = 65536,
				 .rdmacm_connections = 65536});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(client_fetch(&b, c.fd, &req, &status), 0);
	status.bytes[status.len] = '\0';
	for (unsigned i = 0; i < RTE_DIM(limits); i++)
		if (strstr((char *)status.bytes, limits[i]) == NULL)
			fail_msg("%s is not in %s", limits[i], status.bytes);
	client_detach(&b, &c);
	fixture_close(&b);
	fake_fini(&fake);
}

TEST(status_shows_what_users_hold_of_the_port)
{
	struct sw_request take = {.type = SW_QPN_TAKE},
			  peer = {.type = SW_PEER_SET, .dest_qpn = 77},
			  req = {.type = SW_STATUS, .qpn = SW_STATUS_USER};
	static struct sw_data_reply status;
	struct uplink_neigh_entry *queued;
	struct fake_port fake;
	struct fixture_client c;
	struct server_fixture b;
	struct sw_reply reply;

	fixture_open(&b, (struct rocade_daemon_conf){.port = port_make(&fake, 1500)});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_true(client_call(&b, c.fd, &take, &reply, NULL));
	peer.qpn = reply.qpn;
	assert_int_equal(gid_parse("192.0.2.1", peer.sgid, NULL), 0);
	assert_int_equal(gid_parse("192.0.2.99", peer.dgid, NULL), 0);
	assert_true(client_call(&b, c.fd, &peer, &reply, NULL));
	assert_int_equal(reply.error, 0);
	/* As if a packet of the client waited. */
	queued = &b.d->up->neigh_queue[0];
	queued->user = &TAILQ_FIRST(&b.d->conns)->client->user->neighs;
	b.d->up->neigh_queue_count = 2; /* the second one is the connection manager's */
	assert_int_equal(client_fetch(&b, c.fd, &req, &status), 0);
	status.bytes[status.len] = '\0';
	assert_non_null(strstr((char *)status.bytes,
		"\"neighbours\": 1, \"unresolved_neighbours\": 1, \"queued_packets\": 1,"));
	req.qpn = SW_STATUS_DEVICE;
	assert_int_equal(client_fetch(&b, c.fd, &req, &status), 0);
	status.bytes[status.len] = '\0';
	assert_non_null(strstr((char *)status.bytes,
		"\"unresolved_neighbours\": {\"all\": 4096, \"user\": 256, "
		"\"reserved\": 0, \"used\": 1}"));
	assert_non_null(
		strstr((char *)status.bytes, "\"queued_packets\": {\"all\": 256, "));
	queued->user = NULL;
	b.d->up->neigh_queue_count = 0;
	client_detach(&b, &c);
	fixture_close(&b);
	fake_fini(&fake);
}

static void *
queue_serve(void *d)
{
	assert_int_equal(rocade_daemon_run_queue(d, 1), 0);
	return NULL;
}

/* Posts n datagrams to the group, after the first `from` ones. */
static void
datagrams_post_more(struct fixture_client *c, uint32_t qpn, uint32_t from, uint32_t n)
{
	struct ring_prod tx;
	struct ring_cons rx;

	region_client_rings(&c->region, &tx, &rx);
	tx.prod = from;
	for (uint32_t i = from; i < from + n; i++) {
		struct ring_desc desc = {.buf = i, .qpn = qpn};

		desc.len = datagram_build(c, qpn, region_tx_buf(&c->region, i));
		ring_put(&tx, &desc);
	}
	ring_publish(&tx);
}

/* Takes a QPN of the client and posts n datagrams to the group. Returns the QPN. */
static uint32_t
datagrams_post(struct server_fixture *b, struct fixture_client *c, uint32_t n)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_reply reply;

	assert_true(client_call(b, c->fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	datagrams_post_more(c, reply.qpn, 0, n);
	return reply.qpn;
}

static uint32_t
packets_taken(struct rocade_daemon *d, unsigned queue)
{
	struct sw_thread_stats stats;

	sw_thread_stats_read(d->sw->threads[queue], &stats);
	return (uint32_t)stats.tx_packets;
}

/* Two queues and threads: each has a client, whose packets it takes. The second thread sleeps, and
 * its client wakes it. */
TEST(queues_have_threads)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_DEVICE};
	static struct sw_data_reply status;
	struct rocade_daemon_conf conf = {.sleep_us = 1000000};
	struct fixture_client c[2];
	uint32_t woken = 0, qpn;
	struct fake_port fake;
	struct server_fixture b;
	pthread_t thread;

	conf.port = port_make_queues(&fake, 1500, 2);
	fixture_open(&b, conf);
	assert_int_equal(rocade_daemon_run_queue(b.d, 0), EINVAL);
	assert_int_equal(rocade_daemon_run_queue(b.d, 2), EINVAL);
	assert_int_equal(pthread_create(&thread, NULL, queue_serve, b.d), 0);
	await(__atomic_load_n(&b.d->sw->threads[1]->running, __ATOMIC_RELAXED));
	assert_int_equal(rocade_daemon_run_queue(b.d, 1), EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(client_attach(&b, &c[i]), 0);
		assert_int_equal(b.d->sw->threads[i]->client_count, 1);
	}
	await(asleep_is_set(&c[1].region.daemon->tx_asleep));
	qpn = datagrams_post(&b, &c[1], 5);
	if (asleep_wake_wanted(&c[1].region.daemon->tx_asleep, &woken))
		assert_int_equal(
			write(c[1].fds[SW_FD_DAEMON_WAKE], &(uint64_t){1}, 8), 8);
	await(packets_taken(b.d, 1) == 5);
	assert_int_equal(packets_taken(b.d, 0), 0);
	assert_int_equal(client_fetch(&b, c[0].fd, &req, &status), 0);
	status.bytes[status.len] = '\0';
	assert_non_null(strstr((char *)status.bytes,
		"{\"queue\": 1, \"clients\": 1, \"tx_packets\": 5, "));
	/* Addresses and limits change while the thread runs, which then polls all the time. */
	conf = (struct rocade_daemon_conf){.size = sizeof(conf),
		.addresses = "192.0.2.1/24,192.0.2.5/24",
		.client_packets_per_s = 1000000};
	assert_int_equal(rocade_daemon_change(b.d, &conf), 0);
	datagrams_post_more(&c[1], qpn, 5, 3);
	if (asleep_wake_wanted(&c[1].region.daemon->tx_asleep, &woken))
		assert_int_equal(
			write(c[1].fds[SW_FD_DAEMON_WAKE], &(uint64_t){1}, 8), 8);
	await(packets_taken(b.d, 1) == 8);
	/* The second client ends while its thread runs, the first one with the daemon. */
	client_detach(&b, &c[1]);
	assert_int_equal(b.d->sw->threads[1]->client_count, 0);
	client_detach(&b, &c[0]);
	rocade_daemon_stop_queues(b.d);
	pthread_join(thread, NULL);
	fixture_close(&b);
	fake_fini(&fake);
}

/* Packets that a client of the second queue has posted are sent although that queue has stopped. */
TEST(posted_packets_of_all_queues_are_sent_before_close)
{
	struct fixture_client c[2];
	struct fake_port fake;
	struct server_fixture b;
	pthread_t thread;
	struct pkt frame;
	unsigned sent = 0;

	fixture_open(&b,
		(struct rocade_daemon_conf){.port = port_make_queues(&fake, 1500, 2)});
	assert_int_equal(pthread_create(&thread, NULL, queue_serve, b.d), 0);
	await(__atomic_load_n(&b.d->sw->threads[1]->running, __ATOMIC_RELAXED));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	rocade_daemon_stop_queues(b.d);
	pthread_join(thread, NULL);
	datagrams_post(&b, &c[1], 40);
	rocade_daemon_destroy(b.d);
	while (fake_sent(&fake, &frame)) {
		sent += frame.data[0] == 0x01 && frame.data[23] == 17;
		free(frame.data);
	}
	assert_int_equal(sent, 40);
	for (unsigned i = 0; i < 2; i++) {
		client_unmap(&c[i]);
		for (unsigned k = 0; k < SW_ATTACH_FDS; k++)
			close(c[i].fds[k]);
		close(c[i].fd);
	}
	assert_int_equal(rmdir(b.dir), 0);
	fds_await(&b);
	fake_fini(&fake);
}
