/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "engine/engine_gsi.h"
#include "engine/engine_internal.h"

#define GSI_UNRESOLVED 32 /* messages that wait for neighbour resolution */
#define GSI_RETRY_NS NS_PER_MS
#define GSI_PASS 64 /* messages sent in one pass */

struct gsi {
	struct gsi_user user;
	/* when unresolved messages are tried again; TIME_NEVER: there are none */
	uint64_t retry_ns;
	uint32_t psn;
	unsigned unresolved_count;
	struct gsi_msg unresolved[GSI_UNRESOLVED];
};

int
dev_gsi_set(struct dev *dev, const struct gsi_user *user)
{
	struct gsi *gsi;
	int rc = 0;

	if (dev->conf.hooks != NULL)
		return -EOPNOTSUPP;
	gsi = alloc_get(&alloc_plain, "gsi", sizeof(*gsi));
	if (gsi == NULL)
		return -ENOMEM;
	gsi->user = *user;
	gsi->retry_ns = TIME_NEVER;
	pthread_mutex_lock(&dev->lock);
	if (dev->gsi != NULL) {
		rc = -EBUSY;
	} else {
		dev_engines_lock(dev);
		dev->gsi = gsi;
		dev_engines_unlock(dev);
	}
	pthread_mutex_unlock(&dev->lock);
	if (rc != 0)
		alloc_put(&alloc_plain, gsi, sizeof(*gsi));
	return rc;
}

void
dev_gsi_clear(struct dev *dev)
{
	struct gsi *gsi;

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	gsi = dev->gsi;
	dev->gsi = NULL;
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	alloc_put(&alloc_plain, gsi, sizeof(*gsi));
}

/* ---- Receive ---- */

static bool
gid_is_local(const struct dev *dev, const uint8_t gid[16])
{
	for (unsigned i = 0; i < DEV_GIDS; i++)
		if (memcmp(dev->gids[i], gid, 16) == 0)
			return true;
	return false;
}

static enum drop_reason
gsi_rx_check(
	const struct dev *dev, const struct pkt_view *view, const struct gsi_msg *msg)
{
	if (dev->gsi == NULL)
		return DROP_qpn;
	return gid_is_local(dev, msg->sgid) ? gsi_admit(view) : DROP_address;
}

void
engine_gsi_rx(struct engine *e, const struct pkt_view *view, uint64_t now)
{
	const struct dev *dev = e->dev;
	struct gsi_msg msg;
	enum drop_reason why;

	view_gids(view, msg.dgid, msg.sgid);
	why = gsi_rx_check(dev, view, &msg);
	if (why != DROP_none) {
		e->stats.drop[why]++;
		return;
	}
	e->stats.rx_roce++;
	memcpy(msg.bytes, view->payload, GSI_LEN);
	dev->gsi->user.rx(dev->gsi->user.arg, &msg, now);
}

/* ---- Transmit ---- */

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
	int rc = net_resolve(dev->net, msg->dgid, mac, now);

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

uint64_t
gsi_due(const struct gsi *gsi)
{
	return RTE_MIN(gsi->retry_ns, __atomic_load_n(gsi->user.due, __ATOMIC_RELAXED));
}

void
engine_gsi_tx(struct engine *e, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;
	struct gsi_msg msg;

	if (now < gsi_due(gsi))
		return;
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
