/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of a daemon: its checks, and changes at run time. */
#include "bed.h"

static struct rocade_daemon_conf
good(void)
{
	return (struct rocade_daemon_conf){
		.size = sizeof(struct rocade_daemon_conf), .addresses = "192.0.2.1/24"};
}

static void
refused(struct rocade_daemon_conf c, const char *word)
{
	assert_int_equal(rocade_daemon_check(&c), EINVAL);
	if (strstr(rocade_error(), word) != rocade_error())
		fail_msg("\"%s\" does not begin with \"%s\"", rocade_error(), word);
}

static void
each_member_is_checked(void **state)
{
	struct rocade_daemon_conf c = good();

	(void)state;
	assert_int_equal(rocade_daemon_check(&c), 0);
	c.mtu = 9001;
	refused(c, "mtu: 9001 is not in 576..9000");
	c = good();
	c.vlan = 4095;
	refused(c, "vlan: 4095");
	c = good();
	c.socket_mode = 01000;
	refused(c, "socket_mode: 1000");
	c = good();
	c.name = "a\"b";
	refused(c, "name: \"a\"b\"");
	c = good();
	c.client_ring = 32;
	refused(c, "client_ring: 32");
	c = good();
	c.max_clients = 100000;
	refused(c, "max_clients: 100000");
	c = good();
	c.sleep_us = 1000001;
	refused(c, "sleep_us: 1000001");
	c = good();
	c.addresses = "192.0.2.1/24,192.0.2.1/24";
	refused(c, "addresses: ");
	c = good();
	c.addresses = "192.0.2.255/24";
	refused(c, "addresses: ");
	c = good();
	c.gateway4 = "192.0.3.1";
	refused(c, "gateway4: \"192.0.3.1\" is not in the subnet");
	c.gateway4 = "192.0.2.254";
	c.gateway6 = "2001:db8::fe";
	refused(c, "gateway6: \"2001:db8::fe\" is not in the subnet");
	c.addresses = "192.0.2.1/24,2001:db8::1/64";
	assert_int_equal(rocade_daemon_check(&c), 0);
}

static struct sw_device
hello(struct bed *b, int fd)
{
	struct sw_request req = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;

	assert_true(bed_ask(b, fd, &req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	return reply.device;
}

static void
addresses_change(void **state)
{
	struct rocade_daemon_conf c = good();
	struct sw_device before, now;
	struct bed_client client;
	struct bed b;
	char text[46];

	(void)state;
	bed_open(&b, c);
	assert_int_equal(bed_attach(&b, &client), 0);
	before = hello(&b, client.fd);
	assert_int_equal(before.net.addr_count, 1);
	/* An equal configuration is no change. */
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	assert_int_equal(client.region.head->changes, 0);
	c.addresses = "192.0.2.7/24,2001:db8::1/64";
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	assert_int_equal(client.region.head->changes, 1);
	assert_int_equal(client.region.head->link_down, 0);
	now = hello(&b, client.fd);
	assert_int_equal(now.net.addr_count, 2);
	assert_string_equal(
		gid_format(now.net.addr[0].gid, text, sizeof(text)), "192.0.2.7");
	assert_memory_equal(now.net.mac, before.net.mac, 6);
	assert_true(sw_is_ours(b.d->sw, now.net.addr[1].gid));
	assert_false(sw_is_ours(b.d->sw, before.net.addr[0].gid));
	/* An invalid configuration changes nothing. */
	c.addresses = "224.0.0.1/4";
	c.client_qps = 1;
	assert_int_equal(rocade_daemon_change(b.d, &c), EINVAL);
	assert_int_equal(client.region.head->changes, 1);
	assert_int_equal(b.d->sw->conf.limits.qps, 16384);
	bed_detach(&b, &client);
	bed_close(&b);
}

static int
qpn_take(struct bed *b, int fd)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_reply reply;

	assert_true(bed_ask(b, fd, &req, &reply, NULL));
	return reply.error;
}

static void
limits_change(void **state)
{
	struct rocade_daemon_conf c = good();
	struct bed_client first, second;
	struct bed b;

	(void)state;
	bed_open(&b, c);
	assert_int_equal(bed_attach(&b, &first), 0);
	assert_int_equal(qpn_take(&b, first.fd), 0);
	assert_int_equal(qpn_take(&b, first.fd), 0);
	c.client_qps = 1;
	c.client_mrs = 3;
	c.client_ring = 128;
	c.max_clients = 2;
	c.client_packets_per_s = 1000;
	c.sleep_us = 5;
	assert_int_equal(rocade_daemon_change(b.d, &c), 0);
	/* An attached client keeps what it has, and gets no more. */
	assert_int_equal(first.reply.geom.tx_slots, 64);
	assert_int_equal(b.d->sw->clients.tqh_first->region.geom.tx_slots, 64);
	assert_int_equal(qpn_take(&b, first.fd), ENOMEM);
	assert_int_equal(bed_attach(&b, &second), 0);
	assert_int_equal(second.reply.geom.tx_slots, 128);
	assert_int_equal(second.reply.device.max_qp, 1);
	assert_int_equal(second.reply.device.max_mr, 3);
	assert_int_equal(qpn_take(&b, second.fd), 0);
	assert_int_equal(qpn_take(&b, second.fd), ENOMEM);
	assert_int_equal(b.d->sw->conf.limits.packets_per_s, 1000);
	assert_int_equal(b.d->sleep_us, 5);
	bed_detach(&b, &first);
	bed_detach(&b, &second);
	bed_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_is_checked),
		cmocka_unit_test(addresses_change),
		cmocka_unit_test(limits_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
