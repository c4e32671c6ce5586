/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of the daemon's port: datagrams between its connection manager and those of other
 * hosts, and those of the agent for extensions. */
#include <errno.h>
#include <string.h>

#include "port/ext_query.h"
#include "switch/uplink.h"
#include "wire/ext_mad.h"
#include "wire/icrc.h"

/* The daemon is the receiver here, so it checks the ICRC too. */
static enum drop_reason
uplink_gsi_check(const struct uplink *u, const struct pkt_view *view)
{
	enum drop_reason why;

	if (view->dest_qpn != GSI_QPN)
		return DROP_qpn;
	why = icrc_check(view) ? gsi_admit(view) : DROP_icrc;
	if (why == DROP_none && u->gsi_rx == NULL && !ext_mad_is_class(view->payload))
		return DROP_qpn;
	return why;
}

static void
uplink_ext_rx(struct uplink *u, const struct pkt_view *view, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now)
{
	struct gsi_msg msg;

	memcpy(msg.sgid, ours, 16);
	memcpy(msg.dgid, theirs, 16);
	memcpy(msg.bytes, view->payload, GSI_LEN);
	ext_query_rx(u->sw->ext, &msg, &u->stats, now);
}

void
uplink_gsi_rx(struct uplink *u, const struct pkt *pkt, const struct pkt_view *view,
	const uint8_t ours[16], const uint8_t theirs[16], uint64_t now)
{
	enum drop_reason why = uplink_gsi_check(u, view);

	if (why != DROP_none) {
		u->stats.drop[why]++;
		return;
	}
	u->stats.rx_roce++;
	/* Answers go back to where it came from. */
	net_hint(u->net, theirs, pkt->data + 6, now);
	if (ext_mad_is_class(view->payload))
		uplink_ext_rx(u, view, ours, theirs, now);
	else
		u->gsi_rx(u->gsi_arg, view->payload, ours, theirs, now);
}

bool
uplink_gsi_send(struct uplink *u, const uint8_t *bytes, const uint8_t sgid[16],
	const uint8_t dgid[16], bool answer)
{
	struct path_addr addr = {
		.vlan = u->vlan,
		.cksum_offload = u->port.caps.tx_ipv4_cksum,
	};
	struct pkt frame;

	if (!port_io_frame_get(&u->io, &frame))
		return false;
	memcpy(addr.src_gid, sgid, 16);
	memcpy(addr.dst_gid, dgid, 16);
	memcpy(addr.src_mac, u->port.mac, 6);
	gsi_frame_build(&frame, &addr, u->gsi_psn++, bytes);
	return uplink_frame_send(u, &frame, dgid, answer);
}

/* Sends a message of the agent for extensions. Returns false while its next hop is being
 * resolved. It does not wait for that in the uplink, so that messages of the connection
 * manager find room. */
static bool
ext_send(struct uplink *u, const struct gsi_msg *msg, uint64_t now)
{
	uint8_t mac[6];
	int rc = msg->answer ? net_resolve_answer(u->net, msg->dgid, mac, now)
			     : net_resolve_for(u->net, &u->cm, msg->dgid, mac, now);

	if (rc == -EAGAIN)
		return false;
	if (rc == 0)
		(void)uplink_gsi_send(u, msg->bytes, msg->sgid, msg->dgid, msg->answer);
	else
		u->stats.tx_no_neighbour++;
	return true;
}

void
uplink_ext_tx(struct uplink *u, uint64_t now)
{
	struct gsi_msg msg;

	while (ext_query_tx(u->sw->ext, &msg, &u->stats, now))
		ext_query_tx_done(
			u->sw->ext, &msg, ext_send(u, &msg, now), &u->stats, now);
}
