/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Unreliable datagrams (IBA 9.8.3): a message is one packet, without acknowledgement. A
 * send completes when its packet has been built. A receive begins with 40 bytes for the
 * GRH: the IPv6 header, or 20 bytes of zeros and the IPv4 header (annex A17.4.5).
 */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#include "qp/counting.h"
#include "qp/qp_state.h"
#include "qp/request_fault.h"
#include "qp/transport.h"

#define GRH_LEN 40
#define QKEY_OWN 0x80000000u /* in a work request: the QP's own Q_Key (IBA 10.2.5) */
/* UCX tells IPv4 from IPv6 by the SL of the completion. */
#define SL_IPV4 0xA
#define SL_IPV6 0x9
#define SL_SHIFT 24

static const struct ud_dest *
ud_dest_of(const struct send_wqe *wqe)
{
	return (const struct ud_dest *)wqe->sge;
}

const struct ud_dest *
qp_next_dest(const struct qp *qp)
{
	if (qp->state != IBV_QPS_RTS || qp->req.next_idx == sq_posted(&qp->sq))
		return NULL;
	return ud_dest_of(sq_slot(&qp->sq, qp->req.next_idx));
}

static int
ud_payload_gather(
	struct qp *qp, const struct send_wqe *wqe, uint8_t *dst, struct icrc_sum *sum)
{
	struct sge_pos pos = {0};
	struct sge_cursor c = request_cursor(qp, wqe, &pos);

	if (wqe->len == 0)
		return 0;
	if (wqe->flags & IBV_SEND_INLINE) {
		memcpy(dst, wqe->inline_data + sizeof(struct ud_dest), wqe->len);
		return 0;
	}
	c.sge += UD_DEST_SGES;
	return sge_gather(&c, dst, wqe->len, sum);
}

static int
ud_packet_build(struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt)
{
	const struct ud_dest *dest = ud_dest_of(wqe);
	bool imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;
	struct bth_fields bth = {
		.dest_qpn = dest->qpn,
		.psn = qp->req.next_psn,
		.pkey = qp->pkey,
		.opcode = imm ? OPCODE_UD_SEND_ONLY_IMM : OPCODE_UD_SEND_ONLY,
		.solicited = (wqe->flags & IBV_SEND_SOLICITED) != 0,
	};
	struct deth *deth = (struct deth *)frame_begin(&qp->hdr, pkt, &bth, wqe->len);
	struct icrc_sum sum = frame_sum(&qp->hdr, pkt);

	deth->qkey =
		rte_cpu_to_be_32(dest->qkey & QKEY_OWN ? qp->params.qkey : dest->qkey);
	deth->reserved = 0;
	be24_put(deth->src_qpn, qp->qpn);
	if (imm)
		memcpy(deth + 1, &wqe->imm, sizeof(wqe->imm));
	if (ud_payload_gather(qp, wqe, frame_payload(&qp->hdr, pkt, bth.opcode), &sum) !=
		0)
		return -EACCES;
	frame_end_sum(&qp->hdr, pkt, wqe->len, sum);
	return 0;
}

/* Builds datagrams until their path changes: the engine sets the headers for the next
 * path. */
struct burst
ud_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	struct requester *req = &qp->req;
	const struct ud_dest *dest = qp_next_dest(qp);
	struct burst burst = {0, VERDICT_GO};
	struct ud_dest first;

	if (unlikely(dest == NULL))
		return burst;
	/* A copy: once the request is complete, a post may use its slot again. */
	first = *dest;
	while (burst.built < n && burst.verdict == VERDICT_GO &&
		(dest = qp_next_dest(qp)) != NULL) {
		const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
		struct psn_range *range = sq_psn_range(&qp->sq, req->next_idx);

		if (memcmp(dest, &first, UD_DEST_PATH) != 0)
			break;
		if (unlikely(ud_packet_build(qp, wqe, &pkts[burst.built]) != 0)) {
			burst.verdict =
				request_is_to_fail(wqe) ? FAULT_INJECTED : FAULT_SEND_SGE;
			break;
		}
		burst.built++;
		/* Never resent, so the end of the range is not needed, and the begin only
		 * by request_packet_find(). */
		range->first_psn = req->next_psn;
		/* Atomic: see req_take_psns(). */
		__atomic_store_n(&range->end,
			(uint32_t)(wqe->flags & WQE_MARKS) << PSN_RANGE_FLAGS_SHIFT,
			__ATOMIC_RELAXED);
		req->next_psn = req->una_psn = req->sent_psn = psn_add(req->next_psn, 1);
		req->started_idx = ++req->next_idx;
		if (unlikely(!qp_complete_oldest(qp)))
			burst.verdict = FAULT_SEND_CQ_FULL;
	}
	return burst;
}

/* ---- Receive ---- */

/* True if the packet is for an address of the port. Not used for a group: the engine has
 * checked the membership. */
static bool
address_is_ours(const struct qp *qp, const struct pkt_view *v)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	for (unsigned i = 0; i < qp->shared->gid_count; i++) {
		const uint8_t *gid = qp->shared->gids[i];

		if (v->ip_version == 6 ? memcmp(gid, v->ip + 24, 16) == 0
				       : memcmp(gid, mapped, 12) == 0 &&
						 memcmp(gid + 12, v->ip + 16, 4) == 0)
			return true;
	}
	return false;
}

enum drop_reason
ud_admit(const struct qp *qp, const struct pkt_view *v)
{
	if (v->dest_qpn != QPN_MULTICAST && !address_is_ours(qp, v))
		return DROP_address;
	if (rte_be_to_cpu_32(view_deth(v)->qkey) != qp->params.qkey)
		return DROP_qkey;
	return DROP_none;
}

/* The header as it was sent. A sender that offloads its checksum leaves 0, also where the
 * datagram comes by no port. */
static void
grh_ipv4(uint8_t *grh, const uint8_t *ip)
{
	struct rte_ipv4_hdr header;

	memcpy(&header, ip, sizeof(header));
	if (header.hdr_checksum == 0)
		header.hdr_checksum = rte_ipv4_cksum(&header);
	memcpy(grh + GRH_LEN - sizeof(header), &header, sizeof(header));
}

static int
ud_payload_copy(struct qp *qp, const struct pkt_view *v)
{
	uint8_t grh[GRH_LEN] = {0};
	struct sge_pos pos = {0};
	struct sge_cursor c = receive_cursor(qp, &pos);
	int rc;

	if (v->ip_version == 6)
		memcpy(grh, v->ip, GRH_LEN);
	else
		grh_ipv4(grh, v->ip);
	rc = sge_scatter(&c, grh, GRH_LEN);
	if (rc == 0 && v->payload_len != 0)
		rc = sge_scatter(&c, v->payload, v->payload_len);
	return rc;
}

static enum verdict
ud_recv_complete(struct qp *qp, const struct pkt_view *v)
{
	bool imm = (v->op->hdrs & HDR_IMM) != 0;
	uint32_t sl = v->ip_version == 4 ? SL_IPV4 : SL_IPV6;
	struct cqe cqe = {
		.wr_id = qp->wqe->wr_id,
		.byte_len = GRH_LEN + v->payload_len,
		.imm = imm ? view_imm_be(v) : 0,
		.qpn = qp->qpn,
		.src_qpn = be24_get(view_deth(v)->src_qpn) | sl << SL_SHIFT,
		.opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_GRH | (imm ? IBV_WC_WITH_IMM : 0),
		.flags = v->solicited ? CQE_SOLICITED : 0,
	};

	qp->resp.wqe_held = false;
	return likely(cq_complete(
		       &qp->shared->gather, qp->recv_cq, &cqe, &qp->shared->now))
		       ? VERDICT_GO
		       : FAULT_RECV_CQ_FULL;
}

/* A datagram that finds no receive is dropped, and so is one that is longer than its
 * receive. That receive serves the next datagram (IBA 9.8.3.2). */
enum verdict
ud_rx(struct qp *qp, const struct pkt_view *v)
{
	if (!qp->resp.wqe_held) {
		int rc = qp->srq != NULL ? srq_take(qp->srq, qp->wqe)
					 : recv_ring_take(qp->rq, qp->wqe);

		if (unlikely(rc != 0)) {
			qp->shared->stats->drop[DROP_no_receive]++;
			return rc == -EAGAIN ? VERDICT_DROP : FAULT_SRQ_ERROR;
		}
		qp->resp.wqe_held = true;
	}
	if (sge_total(qp->wqe->sge, qp->wqe->num_sge) <
		GRH_LEN + (uint64_t)v->payload_len) {
		qp->shared->stats->drop[DROP_receive_short]++;
		return VERDICT_DROP;
	}
	if (ud_payload_copy(qp, v) != 0)
		return FAULT_RECV_SGE;
	qp->stats.rx_msgs++;
	if (unlikely(qp->resp.counts))
		qp_count_recv(qp, GRH_LEN + v->payload_len, false);
	return ud_recv_complete(qp, v);
}
