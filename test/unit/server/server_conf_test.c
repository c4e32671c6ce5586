/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of a daemon: its checks, and changes at run time. */
#include "port/net_addr.h"
#include "server_fixture.h"

static struct rocade_daemon_conf
valid_conf(void)
{
	return (struct rocade_daemon_conf){
		.size = sizeof(struct rocade_daemon_conf), .addresses = "192.0.2.1/24"};
}

static void
expect_refused(struct rocade_daemon_conf c, const char *word)
{
	assert_int_equal(rocade_daemon_check(&c), EINVAL);
	if (strstr(rocade_error(), word) != rocade_error())
		fail_msg("\"%s\" does not begin with \"%s\"", rocade_error(), word);
}

TEST(each_member_is_checked)
{
	struct rocade_daemon_conf c = valid_conf();

	assert_int_equal(rocade_daemon_check(&c), 0);
	c.mtu = 9001;
	expect_refused(c, "mtu: 9001 is not in 576..9000");
	c = valid_conf();
	c.vlan = 4095;
	expect_refused(c, "vlan: 4095");
	c = valid_conf();
	c.socket_mode = 01000;
	expect_refused(c, "socket_mode: 1000");
	c = valid_conf();
	c.name = "a\"b";
	expect_refused(c, "name: \"a\"b\"");
	c = valid_conf();
	c.client_ring = 32;
	expect_refused(c, "client_ring: 32");
	c = valid_conf();
	c.client_pairs = 65;
	expect_refused(c, "client_pairs: 65 is not in 0..64");
	c.client_pairs = 64;
	assert_int_equal(rocade_daemon_check(&c), 0);
	c = valid_conf();
	c.neighbours = 5000;
	expect_refused(c, "neighbours: 5000 is not a power of two in 1024..65536");
	c.neighbours = 131072;
	expect_refused(c, "neighbours: 131072 is not a power of two in 1024..65536");
	c = valid_conf();
	c.rdmacm_connections = 512;
	expect_refused(c, "rdmacm_connections: 512 is not a power of two in 1024..65536");
	c.rdmacm_connections = 65535;
	expect_refused(
		c, "rdmacm_connections: 65535 is not a power of two in 1024..65536");
	c.rdmacm_connections = 65536;
	c.neighbours = 65536;
	assert_int_equal(rocade_daemon_check(&c), 0);
	c = valid_conf();
	c.max_clients = 100000;
	expect_refused(c, "max_clients: 100000");
	c = valid_conf();
	c.sleep_us = 1000001;
	expect_refused(c, "sleep_us: 1000001");
	c = valid_conf();
	c.impair.corrupt_ppm = 1000001;
	expect_refused(c, "impair: of 0, 0, 0 and 1000001 ppm one is not in 0..1000000");
	c = valid_conf();
	c.addresses = "192.0.2.1/24,192.0.2.1/24";
	expect_refused(c, "addresses: ");
	c = valid_conf();
	c.addresses = "192.0.2.255/24";
	expect_refused(c, "addresses: ");
	c = valid_conf();
	c.gateway4 = "192.0.3.1";
	expect_refused(c, "gateway4: \"192.0.3.1\" is not in the subnet");
	c.gateway4 = "192.0.2.254";
	c.gateway6 = "2001:db8::fe";
	expect_refused(c, "gateway6: \"2001:db8::fe\" is not in the subnet");
	c.addresses = "192.0.2.1/24,2001:db8::1/64";
	assert_int_equal(rocade_daemon_check(&c), 0);
}

static struct sw_device
device_info(struct server_fixture *b, int fd)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;

	assert_true(client_call(b, fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	return reply.device;
}

TEST(addresses_change_at_run_time)
{
	struct rocade_daemon_conf c = valid_conf();
	struct sw_device before, now;
	struct fixture_client client;
	struct server_fixture b;
	char text[46];

	fixture_open(&b, c);
	assert_int_equal(client_attach(&b, &client), 0);
	before = device_info(&b, client.fd);
	assert_int_equal(before.net.addr_count, 1);
	/* An equal configuration is no change. */
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	assert_int_equal(client.region.daemon->changes, 0);
	c.addresses = "192.0.2.7/24,2001:db8::1/64";
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	assert_int_equal(client.region.daemon->changes, 1);
	assert_int_equal(client.region.daemon->link_down, 0);
	now = device_info(&b, client.fd);
	assert_int_equal(now.net.addr_count, 2);
	assert_string_equal(
		gid_format(now.net.addr[0].gid, text, sizeof(text)), "192.0.2.7");
	assert_memory_equal(now.net.mac, before.net.mac, 6);
	assert_true(net_is_ours(&b.d->sw->conf.net, now.net.addr[1].gid));
	assert_false(net_is_ours(&b.d->sw->conf.net, before.net.addr[0].gid));
	/* An invalid configuration changes nothing. */
	c.addresses = "224.0.0.1/4";
	c.client_qps = 1;
	assert_int_equal(rocade_daemon_change(b.d, &c), EINVAL);
	assert_int_equal(client.region.daemon->changes, 1);
	assert_int_equal(b.d->sw->conf.limits.qps, 16384);
	client_detach(&b, &client);
	fixture_close(&b);
}

static int
qpn_take(struct server_fixture *b, int fd)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_reply reply;

	assert_true(client_call(b, fd, &req, &reply, NULL));
	return reply.error;
}

TEST(limits_change_at_run_time)
{
	struct rocade_daemon_conf c = valid_conf();
	struct fixture_client first, second;
	struct server_fixture b;

	fixture_open(&b, c);
	assert_int_equal(client_attach(&b, &first), 0);
	assert_int_equal(b.d->sw->conf.limits.pairs, 0);
	assert_int_equal(qpn_take(&b, first.fd), 0);
	assert_int_equal(qpn_take(&b, first.fd), 0);
	c.client_qps = 1;
	c.client_mrs = 3;
	c.client_ring = 128;
	c.max_clients = 2;
	c.client_packets_per_s = 1000;
	c.client_pairs = 3;
	c.sleep_us = 5;
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	/* An attached client keeps what it has, and gets no more. */
	assert_int_equal(first.reply.geom.tx_slots, 64);
	assert_int_equal(b.d->sw->clients.tqh_first->region.geom.tx_slots, 64);
	assert_int_equal(qpn_take(&b, first.fd), ENOMEM);
	assert_int_equal(client_attach(&b, &second), 0);
	assert_int_equal(second.reply.geom.tx_slots, 128);
	assert_int_equal(second.reply.device.max_qp, 1);
	assert_int_equal(second.reply.device.max_mr, 3);
	assert_int_equal(qpn_take(&b, second.fd), 0);
	assert_int_equal(qpn_take(&b, second.fd), ENOMEM);
	assert_int_equal(b.d->sw->conf.limits.packets_per_s, 1000);
	assert_int_equal(b.d->sw->conf.limits.pairs, 3);
	assert_int_equal(b.d->sleep_us, 5);
	client_detach(&b, &first);
	client_detach(&b, &second);
	fixture_close(&b);
}
