/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's addresses and neighbours. */
#include <errno.h>
#include <string.h>

#include "base/no_cancel.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

/* Of two threads that change addresses and a gateway, neither restores what the other has changed. */
static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT int
rocade_gid_parse(const char *text, union ibv_gid *gid)
{
	uint8_t prefix_len;
	uint8_t raw[16];

	if (arg_missing("gid", gid))
		return EINVAL;
	if (text == NULL || strchr(text, '/') != NULL ||
		gid_parse(text, raw, &prefix_len) != 0)
		return rocade_fail(EINVAL,
			"invalid address \"%s\": expected IPv4 or IPv6",
			text != NULL ? text : "");
	memcpy(gid->raw, raw, sizeof(gid->raw));
	return 0;
}

EXPORT const char *
rocade_gid_format(const union ibv_gid *gid, char *buf, size_t size)
{
	if (arg_missing("gid", gid) || arg_missing("buf", buf))
		return NULL;
	return gid_format(gid->raw, buf, size);
}

EXPORT int
rocade_port_resolve(struct rocade_port *port, const union ibv_gid *gid)
{
	char text[46];
	uint8_t mac[6];
	int err;

	if (arg_missing("port", port) || arg_missing("gid", gid))
		return EINVAL;
	gid_format(gid->raw, text, sizeof(text));
	if (!gid_is_unicast(gid->raw))
		return rocade_fail(
			EINVAL, "invalid address %s: expected a unicast address", text);
	err = -net_resolve(port->dev->net, gid->raw, mac, engine_clock());
	dev_control_wake(port->dev);
	switch (err) {
	case 0:
		return 0;
	case EAGAIN:
		return rocade_fail(EAGAIN, "%s: its next hop is being resolved", text);
	case EHOSTUNREACH:
		return rocade_fail(
			EHOSTUNREACH, "%s: its next hop does not answer", text);
	case ENETUNREACH:
		return rocade_fail(ENETUNREACH,
			"%s: no route: not on-link, and there is no gateway", text);
	default:
		return rocade_fail(err, "%s: the neighbour table is full", text);
	}
}

/* With change_lock held. */
static int
addresses_change(struct rocade_port *port, const char *addresses, const char *gateway4,
	const char *gateway6)
{
	struct net_conf net;
	int err;

	pthread_mutex_lock(&port->dev->lock);
	net = port->dev->conf.net;
	pthread_mutex_unlock(&port->dev->lock);
	err = port_net_read(addresses, gateway4, gateway6, &net);
	if (err != 0)
		return err;
	err = -dev_set_net(port->dev, &net);
	if (err != 0)
		return rocade_fail(
			err, "addresses: one of them is not a valid host address");
	port_addresses_changed(port);
	return 0;
}

EXPORT int
rocade_port_set_addresses(struct rocade_port *port, const char *addresses,
	const char *gateway4, const char *gateway6)
{
	int err, state;

	if (arg_missing("port", port))
		return EINVAL;
	state = no_cancel_begin();
	pthread_mutex_lock(&change_lock);
	err = addresses_change(port, addresses, gateway4, gateway6);
	pthread_mutex_unlock(&change_lock);
	no_cancel_end(state);
	return err;
}

EXPORT bool
rocade_port_link_up(struct rocade_port *port)
{
	return !arg_missing("port", port) && dev_link_up(port->dev);
}

EXPORT int
rocade_port_set_link(struct rocade_port *port, bool up)
{
	struct port *p;
	int err;

	if (arg_missing("port", port))
		return EINVAL;
	p = &port->dev->port;
	err = p->ops->set_link != NULL ? -p->ops->set_link(p->drv, up) : EOPNOTSUPP;
	if (err == ENOTSUP)
		return rocade_fail(EOPNOTSUPP, "this port cannot set its link state");
	if (err != 0)
		return rocade_fail(err, "cannot set the link state: %s", strerror(err));
	return 0;
}

struct neigh_rows {
	char *rows;
	size_t size; /* of a row of the program */
	unsigned n;
	unsigned count;
};

static void
neigh_row(const struct neigh_info *info, void *arg)
{
	struct neigh_rows *to = arg;
	struct rocade_neigh row = {.state = info->state, .age_ns = info->age_ns};

	if (to->count++ >= to->n)
		return;
	memcpy(row.gid.raw, info->gid, sizeof(row.gid.raw));
	memcpy(row.mac, info->mac, sizeof(row.mac));
	out_give(to->rows + (to->count - 1) * to->size, to->size, &row, sizeof(row));
}

EXPORT unsigned
rocade_port_neighs_sized(
	struct rocade_port *port, struct rocade_neigh *rows, unsigned n, size_t row_size)
{
	struct neigh_rows to = {
		.rows = (char *)rows, .size = row_size, .n = rows_of(rows, n)};

	if (arg_missing("port", port))
		return 0;
	net_each(port->dev->net, engine_clock(), neigh_row, &to);
	return to.count;
}

/* Returns 0 or an errno value. With hooks the daemon resolves neighbours, and struct net knows
 * no MAC but that of its own addresses. */
static int
next_hop_find(struct dev *dev, const uint8_t gid[16], uint8_t mac[6])
{
	int err;

	if (dev->conf.hooks != NULL)
		return net_lookup(dev->net, gid, mac) == 0 ? 0 : EOPNOTSUPP;
	err = -net_resolve(dev->net, gid, mac, engine_clock());
	dev_control_wake(dev);
	return err;
}

/* Returns the next hop's MAC, or EAGAIN while it is being resolved: does not wait,
 * because resolution needs an engine that runs. */
EXPORT int
ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
	uint8_t eth_mac[6], uint16_t *vid)
{
	struct dev *dev;
	int err;

	if (!context_is_ours(context))
		return forward(
			ENOSYS, ibv_resolve_eth_l2_from_gid, context, attr, eth_mac, vid);
	dev = to_ctx(context)->dev;
	if (dev == NULL)
		return errno_set(ENODEV);
	if (!gid_is_unicast(attr->grh.dgid.raw))
		return errno_set(EINVAL);
	err = next_hop_find(dev, attr->grh.dgid.raw, eth_mac);
	if (err == 0 && vid != NULL)
		*vid = dev->conf.net.vlan;
	return errno_set(err);
}
