/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of the daemon's port: datagrams between its connection manager and other
 * machines'. */
#include <string.h>

#include <rte_byteorder.h>

#include "engine/gsi.h"
#include "switch/uplink.h"
#include "wire/build.h"
#include "wire/icrc.h"

#define GSI_HOP_LIMIT 64

/* Here the daemon is the receiver: the ICRC is its to check, too. */
static enum drop_reason
admit(const struct uplink *u, const struct pkt_view *view)
{
	if (u->gsi_rx == NULL || view->dest_qpn != GSI_QPN)
		return DROP_qpn;
	if (view->opcode != OPCODE_UD_SEND_ONLY)
		return DROP_qp_type;
	if (!icrc_check(view))
		return DROP_icrc;
	if ((view->pkey & 0x7FFF) != (PKEY_DEFAULT & 0x7FFF))
		return DROP_pkey;
	if (rte_be_to_cpu_32(view_deth(view)->qkey) != GSI_QKEY)
		return DROP_qkey;
	/* Agents speak from QP 1: an answer would go there. */
	if (be24_get(view_deth(view)->src_qpn) != GSI_QPN)
		return DROP_qpn;
	return view->payload_len == GSI_LEN ? DROP_none : DROP_length;
}

void
uplink_gsi_rx(struct uplink *u, const struct pkt_view *view, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now)
{
	enum drop_reason why = admit(u, view);

	if (why != DROP_none) {
		u->stats.drop[why]++;
		return;
	}
	u->stats.rx_roce++;
	u->gsi_rx(u->gsi_arg, view->payload, ours, theirs, now);
}

bool
uplink_gsi_send(struct uplink *u, const uint8_t *bytes, const uint8_t sgid[16],
	const uint8_t dgid[16])
{
	struct path_addr addr = {
		.vlan = u->vlan,
		.udp_sport = roce_udp_sport(0, GSI_QPN, GSI_QPN),
		.hop_limit = GSI_HOP_LIMIT,
		.src_qpn = GSI_QPN,
		.cksum_offload = u->port.caps.tx_ipv4_cksum,
	};
	struct bth_fields bth = {
		.dest_qpn = GSI_QPN,
		.psn = u->gsi_psn++ & 0xFFFFFF,
		.pkey = PKEY_DEFAULT,
		.opcode = OPCODE_UD_SEND_ONLY,
	};
	struct path_hdr hdr;
	struct deth *deth;
	uint8_t *payload;
	struct pkt frame;
	uint32_t crc;

	if (!uplink_frame(u, &frame))
		return false;
	memcpy(addr.src_gid, sgid, 16);
	memcpy(addr.dst_gid, dgid, 16);
	memcpy(addr.src_mac, u->port.mac, 6);
	path_hdr_init(&hdr, &addr);
	deth = (struct deth *)frame_begin(&hdr, &frame, &bth, GSI_LEN);
	deth->qkey = rte_cpu_to_be_32(GSI_QKEY);
	deth->reserved = 0;
	be24_put(deth->src_qpn, GSI_QPN);
	crc = frame_crc(&hdr, &frame);
	payload = frame_payload(&hdr, &frame, bth.opcode);
	memcpy(payload, bytes, GSI_LEN);
	frame_end(&frame, GSI_LEN, icrc_update(crc, payload, GSI_LEN));
	return uplink_frame_send(u, &frame, dgid);
}
