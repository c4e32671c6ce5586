/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of the daemon's port: datagrams between its connection manager and those of other
 * hosts. */
#include <string.h>

#include "switch/uplink.h"
#include "wire/wire_gsi.h"
#include "wire/icrc.h"

/* The daemon is the receiver here, so it checks the ICRC too. */
static enum drop_reason
uplink_gsi_check(const struct uplink *u, const struct pkt_view *view)
{
	if (u->gsi_rx == NULL || view->dest_qpn != GSI_QPN)
		return DROP_qpn;
	return icrc_check(view) ? gsi_admit(view) : DROP_icrc;
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
