/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Messages of QP 1 that are due. */
#include <errno.h>
#include <string.h>

#include "engine/engine_gsi.h"
#include "engine/pass.h"

#define GSI_RETRY_NS NS_PER_MS
#define GSI_PASS 64 /* messages sent in one pass */

/* Resolves the next hop. The daemon does that for its clients. */
static int
msg_next_hop(struct engine *e, const struct gsi_msg *msg, uint8_t mac[6], uint64_t now)
{
	const struct dev *dev = e->dev;

	memset(mac, 0, 6);
	if (dev->conf.hooks != NULL)
		return 0;
	return msg->answer ? net_resolve_answer(dev->net, msg->dgid, mac, now)
			   : net_resolve(dev->net, msg->dgid, mac, now);
}

static void
msg_frame_build(struct engine *e, const struct gsi_msg *msg, const uint8_t mac[6],
	bool self, struct pkt *frame)
{
	const struct dev *dev = e->dev;
	struct path_addr addr = {
		.vlan = dev->conf.net.vlan,
		.cksum_offload = dev->port.caps.tx_ipv4_cksum && !self,
	};

	memcpy(addr.src_gid, msg->sgid, 16);
	memcpy(addr.dst_gid, msg->dgid, 16);
	memcpy(addr.src_mac, dev->port.mac, 6);
	memcpy(addr.dst_mac, mac, 6);
	gsi_frame_build(frame, &addr, dev->gsi->psn++, msg->bytes);
}

/* Returns false while the next hop is being resolved. A message that cannot be sent is
 * lost, as it might be on the wire. */
static bool
msg_send(struct engine *e, const struct gsi_msg *msg, uint64_t now)
{
	struct dev *dev = e->dev;
	struct pkt frame;
	uint8_t mac[6];
	bool self;
	int rc = msg_next_hop(e, msg, mac, now);

	if (rc == -EAGAIN)
		return false;
	if (rc != 0) {
		e->stats.tx_no_neighbour++;
		return true;
	}
	if (!port_io_frame_get(&e->io, &frame))
		return true;
	self = memcmp(mac, dev->port.mac, 6) == 0;
	msg_frame_build(e, msg, mac, self, &frame);
	if (!self) {
		(void)port_io_send(&e->io, &frame, now);
		return true;
	}
	e->stats.tx_loopback++;
	engine_rx_process(e, &frame, 1, now);
	return true;
}

static void
unresolved_send(struct engine *e, struct gsi *gsi, uint64_t now)
{
	unsigned left = 0;

	for (unsigned i = 0; i < gsi->unresolved_count; i++)
		if (!msg_send(e, &gsi->unresolved[i], now))
			gsi->unresolved[left++] = gsi->unresolved[i];
	gsi->unresolved_count = left;
}

static void
user_tx(struct engine *e, struct gsi *gsi, uint64_t now)
{
	struct gsi_msg msg;

	unresolved_send(e, gsi, now);
	for (unsigned i = 0; i < GSI_PASS && gsi->user.tx(gsi->user.arg, &msg, now);
		i++) {
		if (msg_send(e, &msg, now))
			continue;
		if (gsi->unresolved_count < GSI_UNRESOLVED)
			gsi->unresolved[gsi->unresolved_count++] = msg;
		else
			e->stats.tx_no_neighbour++;
	}
	gsi->retry_ns = gsi->unresolved_count != 0 ? now + GSI_RETRY_NS : TIME_NEVER;
}

void
engine_gsi_tx(struct engine *e, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;
	struct gsi_msg msg;

	if (now >= gsi_user_due(gsi))
		user_tx(e, gsi, now);
	/* Messages of the agent for extensions do not wait in gsi->unresolved, so that those
	 * of the user find room. */
	for (unsigned i = 0; i < GSI_PASS && engine_ext_tx(e, &msg, now); i++)
		engine_ext_tx_done(e, &msg, msg_send(e, &msg, now), now);
	e->earliest_ns = RTE_MIN(e->earliest_ns, gsi_due(gsi));
}
