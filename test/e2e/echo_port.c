/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ethdev port with addresses that answers ARP, ND and pings, and does nothing else.
 * For ping.py.
 *
 *   echo_port EAL-ARGUMENTS -- MTU VLAN GATEWAY4|- GATEWAY6|- ADDRESS/PREFIX...
 *
 * Prints "open MAC", then waits for a line before it polls, so that the other end can be
 * configured. After that it takes lines: "resolve ADDRESS" prints the MAC or an error,
 * "quit" ends the program.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "ethdev/ethdev.h"
#include "port/net.h"

#define MAC_FORMAT "%02x:%02x:%02x:%02x:%02x:%02x"
#define MAC_BYTES(m) (m)[0], (m)[1], (m)[2], (m)[3], (m)[4], (m)[5]

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void
die(const char *why)
{
	fprintf(stderr, "echo_port: %s\n", why);
	exit(1);
}

static void
gateway_read(const char *text, uint8_t gid[16])
{
	if (strcmp(text, "-") != 0 && gid_parse(text, gid, NULL) != 0)
		die("invalid gateway");
}

static struct net *
net_open(const struct port *port, int argc, char **argv)
{
	struct net_conf conf = {.vlan = (uint16_t)atoi(argv[1])};
	struct net_addr *local = &conf.addr[conf.addr_count++];
	struct net *net;

	memcpy(conf.mac, port->mac, 6);
	gid_link_local(conf.mac, local->gid);
	local->prefix_len = 64;
	gateway_read(argv[2], conf.gateway4);
	gateway_read(argv[3], conf.gateway6);
	for (int i = 4; i < argc; i++) {
		struct net_addr *addr = &conf.addr[conf.addr_count++];

		if (gid_parse(argv[i], addr->gid, &addr->prefix_len) != 0)
			die("invalid address");
	}
	if (net_create(&conf, &net) != 0)
		die("net_create() failed");
	return net;
}

static void
transmit(const struct port *port, struct pkt *pkt)
{
	/* The ring may be full for a moment. */
	for (unsigned tries = 0; tries < 1000; tries++)
		if (port->ops->tx_burst(port->queues[0], pkt, 1) == 1)
			return;
	port->ops->tx_release(port->queues[0], pkt, 1);
}

static void
echo_port_poll(const struct port *port, struct net *net)
{
	struct pkt pkts[PKT_BURST], out;
	unsigned n = port->ops->rx_burst(port->queues[0], pkts, PKT_BURST);
	uint64_t now = now_ns();
	enum drop_reason why;

	for (unsigned i = 0; i < n; i++) {
		if (port->ops->tx_alloc(port->queues[0], &out, 1) != 1)
			break;
		if (net_rx(net, &pkts[i], &out, &why, now))
			transmit(port, &out);
		else
			port->ops->tx_release(port->queues[0], &out, 1);
	}
	port->ops->rx_release(port->queues[0], pkts, n);
	while (net_deadline(net) <= now) {
		if (port->ops->tx_alloc(port->queues[0], &out, 1) != 1)
			break;
		if (net_tx(net, &out, 1, now) != 1) {
			port->ops->tx_release(port->queues[0], &out, 1);
			break;
		}
		transmit(port, &out);
	}
}

/* Retries whenever the generation has changed, as an engine does. */
static void
resolve(const struct port *port, struct net *net, const char *text)
{
	uint32_t generation;
	uint8_t dst[16], mac[6];
	int ret;

	if (gid_parse(text, dst, NULL) != 0) {
		puts("EINVAL");
		return;
	}
	do {
		generation = net_generation(net);
		ret = net_resolve(net, dst, mac, now_ns());
		while (ret == -EAGAIN && net_generation(net) == generation)
			echo_port_poll(port, net);
	} while (ret == -EAGAIN);
	if (ret == 0)
		printf(MAC_FORMAT "\n", MAC_BYTES(mac));
	else
		puts(strerrorname_np(-ret));
}

static bool
command(const struct port *port, struct net *net)
{
	char line[128], text[64];
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	if (poll(&in, 1, 0) <= 0)
		return true;
	if (fgets(line, sizeof(line), stdin) == NULL || strcmp(line, "quit\n") == 0)
		return false;
	if (sscanf(line, "resolve %63s", text) == 1)
		resolve(port, net, text);
	return true;
}

int
main(int argc, char **argv)
{
	struct ethdev_conf conf = {.queues = 1};
	uint8_t macs[NET_MAX_MACS][6];
	char err[200], line[16];
	struct port port;
	struct net *net;
	int eal = rte_eal_init(argc, argv);

	if (eal < 0 || argc - eal < 5)
		die("cannot start EAL, or missing arguments");
	argc -= eal + 1;
	argv += eal + 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees what fgets() left */
	conf.mtu = (uint32_t)atoi(argv[0]);
	if (ethdev_open(&conf, &port, err, sizeof(err)) != 0)
		die(err);
	net = net_open(&port, argc, argv);
	port.ops->set_groups(port.drv, (const uint8_t(*)[6])macs,
		net_group_macs(net, macs, NET_MAX_MACS));
	printf("open " MAC_FORMAT "\n", MAC_BYTES(port.mac));
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 1;
	for (unsigned i = 0; i % 64 != 0 || command(&port, net); i++)
		echo_port_poll(&port, net);
	net_destroy(net);
	port.ops->close(port.drv);
	rte_eal_cleanup();
	return 0;
}
