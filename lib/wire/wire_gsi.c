/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include <rte_byteorder.h>

#include "wire/ext_mad.h"
#include "wire/wire_gsi.h"

#define HOP_LIMIT 64

enum drop_reason
gsi_admit(const struct pkt_view *view)
{
	if (view->opcode != OPCODE_UD_SEND_ONLY)
		return DROP_qp_type;
	if ((view->pkey & 0x7FFF) != (PKEY_DEFAULT & 0x7FFF))
		return DROP_pkey;
	if (rte_be_to_cpu_32(view_deth(view)->qkey) != GSI_QKEY)
		return DROP_qkey;
	/* Agents send from QP 1, where a reply would go. */
	if (be24_get(view_deth(view)->src_qpn) != GSI_QPN)
		return DROP_qpn;
	return view->payload_len == GSI_LEN ? DROP_none : DROP_length;
}

void
gsi_frame_build(struct pkt *frame, struct path_addr *addr, uint32_t psn,
	const uint8_t bytes[GSI_LEN])
{
	struct bth_fields bth = {
		.dest_qpn = GSI_QPN,
		.psn = psn & 0xFFFFFF,
		.pkey = PKEY_DEFAULT,
		.opcode = OPCODE_UD_SEND_ONLY,
	};
	bool extensions = ((const struct mad *)bytes)->mgmt_class == EXT_MAD_CLASS;
	struct path_hdr hdr;
	struct deth *deth;

	/* A query for extensions is repeated a few times only. Each query and answer takes
	 * another of several equal paths, as one of them may be dead. The other messages stay
	 * in order. */
	addr->udp_sport = roce_udp_sport(extensions ? psn + 1 : 0, GSI_QPN, GSI_QPN);
	addr->hop_limit = HOP_LIMIT;
	addr->src_qpn = GSI_QPN; /* also for ports that use PKT_TX_QPN() */
	path_hdr_init(&hdr, addr);
	deth = (struct deth *)frame_begin(&hdr, frame, &bth, GSI_LEN);
	deth->qkey = rte_cpu_to_be_32(GSI_QKEY);
	deth->reserved = 0;
	be24_put(deth->src_qpn, GSI_QPN);
	memcpy(frame_payload(&hdr, frame, bth.opcode), bytes, GSI_LEN);
	frame_end(&hdr, frame, GSI_LEN);
}
