/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the configuration of rocade_open_*() and converts it to a struct dev_conf. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/off.h"
#include "qp/multipath.h"
#include "verbs/verbs_port.h"

#define MTU_MIN 576
#define MTU_MAX 9000
#define QPN_MAX 0xFFFFFE
#define MAX_QP_MAX (1u << 17)

/* Splits the text at commas. */
static int
addresses_read(const char *text, struct net_conf *net)
{
	size_t used = 0;

	if (text == NULL || text[0] == '\0')
		return rocade_fail(EINVAL,
			"addresses: missing: expected for example \"192.0.2.1/24\"");
	net->addr_count = 0;
	while (text != NULL) {
		const char *comma = strchr(text, ',');
		size_t len = comma != NULL ? (size_t)(comma - text) : strlen(text);
		struct net_addr *addr = &net->addr[used];
		char one[64];

		/* The last slot is for the link-local address. */
		if (used == NET_MAX_ADDRS - 1)
			return rocade_fail(
				EINVAL, "addresses: more than %d", NET_MAX_ADDRS - 1);
		if (len >= sizeof(one))
			return rocade_fail(
				EINVAL, "addresses: invalid address \"%.*s\"", 40, text);
		memcpy(one, text, len);
		one[len] = '\0';
		if (gid_parse(one, addr->gid, &addr->prefix_len) != 0)
			return rocade_fail(EINVAL,
				"addresses: invalid address \"%s\": expected for example "
				"\"192.0.2.1/24\"",
				one);
		used++;
		text = comma != NULL ? comma + 1 : NULL;
	}
	net->addr_count = (uint16_t)used;
	return 0;
}

static int
gateway_read(const char *name, const char *text, bool ipv4, uint8_t gid[16])
{
	uint8_t prefix_len;

	memset(gid, 0, 16);
	if (text == NULL || text[0] == '\0')
		return 0;
	if (strchr(text, '/') != NULL || gid_parse(text, gid, &prefix_len) != 0 ||
		gid_is_ipv4(gid) != ipv4) {
		memset(gid, 0, 16);
		return rocade_fail(EINVAL,
			"%s: invalid value \"%s\": expected an %s address", name, text,
			ipv4 ? "IPv4" : "IPv6");
	}
	return 0;
}

int
port_net_read(const char *addresses, const char *gateway4, const char *gateway6,
	struct net_conf *net)
{
	int err = 0;

	if (addresses != NULL)
		err = addresses_read(addresses, net);
	if (err == 0 && gateway4 != NULL)
		err = gateway_read("gateway4", gateway4, true, net->gateway4);
	if (err == 0 && gateway6 != NULL)
		err = gateway_read("gateway6", gateway6, false, net->gateway6);
	return err;
}

static int
conf_ranges_check(const struct rocade_port_conf *conf)
{
	if (conf->mtu != 0 && (conf->mtu < MTU_MIN || conf->mtu > MTU_MAX))
		return rocade_fail(
			EINVAL, "mtu: %u is not in %d..%d", conf->mtu, MTU_MIN, MTU_MAX);
	if (conf->vlan > 4094)
		return rocade_fail(EINVAL, "vlan: %u is not in 0..4094", conf->vlan);
	if (conf->engines > DEV_MAX_ENGINES)
		return rocade_fail(EINVAL, "engines: %u is not in 1..%d", conf->engines,
			DEV_MAX_ENGINES);
	if (conf->qpn_base == 1 || conf->qpn_base > QPN_MAX)
		return rocade_fail(
			EINVAL, "qpn_base: %u is not in 2..%d", conf->qpn_base, QPN_MAX);
	if (conf->paths > PATHS_MAX)
		return rocade_fail(
			EINVAL, "paths: %u is not in 1..%d", conf->paths, PATHS_MAX);
	if (conf->max_peers != 0 &&
		(conf->max_peers < NET_NEIGHS_MIN || conf->max_peers > NET_NEIGHS_MAX ||
			!rte_is_power_of_2(conf->max_peers)))
		return rocade_fail(EINVAL,
			"max_peers: %u is not a power of two in %d..%d", conf->max_peers,
			NET_NEIGHS_MIN, NET_NEIGHS_MAX);
	if (conf->max_qp > MAX_QP_MAX)
		return rocade_fail(
			EINVAL, "max_qp: %u is not in 1..%u", conf->max_qp, MAX_QP_MAX);
	return 0;
}

const struct conf_kind *const port_conf_kind =
	CONF_KIND(struct rocade_port_conf, max_peers);

int
port_conf_read(const struct rocade_port_conf *given, struct rocade_port_conf *out_conf,
	struct dev_conf *out)
{
	struct dev_conf dev = {.cc = {.on = true}};
	struct rocade_port_conf taken, *conf = &taken;
	char why[OFF_WHY_MAX];
	int err;

	if (given == NULL)
		return rocade_fail(EINVAL, "no configuration given");
	err = conf_take(port_conf_kind, conf, given, given->size);
	if (err == 0)
		err = conf_ranges_check(conf);
	if (err == 0)
		err = port_cc_read(conf->cc, &dev.cc);
	if (err == 0)
		dev.paths = (uint8_t)conf->paths;
	if (err == 0 && (cc_env_read(&dev.cc, why, sizeof(why)) != 0 ||
				multipath_conf_read(&dev.paths, why, sizeof(why)) != 0 ||
				off_check(why, sizeof(why)) != 0))
		err = rocade_fail(EINVAL, "%s", why);
	if (err == 0 && conf->addresses == NULL)
		err = addresses_read(NULL, &dev.net);
	if (err == 0)
		err = port_net_read(
			conf->addresses, conf->gateway4, conf->gateway6, &dev.net);
	if (err != 0)
		return err;
	if (conf->name != NULL) {
		if (conf->name[0] == '\0' || strlen(conf->name) >= sizeof(dev.name))
			return rocade_fail(EINVAL,
				"name: invalid length: expected 1 to %zu characters",
				sizeof(dev.name) - 1);
		strcpy(dev.name, conf->name);
	}
	dev.net.vlan = conf->vlan;
	dev.mtu = conf->mtu;
	dev.qpn_base = conf->qpn_base;
	dev.max_qp = conf->max_qp != 0 ? conf->max_qp : 65536;
	dev.neighs = conf->max_peers;
	dev.peer_window = conf->peer_window;
	dev.no_cnp = conf->no_cnp;
	dev.no_sack = conf->no_sack;
	dev.mr_fault_handler = conf->mr_fault_handler;
	dev.flight_recorder = conf->flight_recorder;
	*out = dev;
	*out_conf = *conf;
	if (out_conf->engines == 0)
		out_conf->engines = 1;
	return 0;
}
