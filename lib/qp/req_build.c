/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Properties of requests, and their packets: each is a function of the request and the
 * PSN. */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "qp/congestion.h"
#include "qp/mbuf_send.h"
#include "qp/multipath.h"
#include "qp/req.h"

#define WC_OPCODE_FLUSH 8 /* IBV_WC_FLUSH of newer headers */

#define ACK_EVERY (QP_MAX_UNACKED / 4) /* packets between AckReqs inside long messages */

/* Opcodes of a message of several packets, or of only one. */
#define DATA_OPCODES(middle, last, first, only)                                          \
	{                                                                                \
		{OPCODE_RC_##middle, OPCODE_RC_##last},                                  \
		{                                                                        \
			OPCODE_RC_##first, OPCODE_RC_##only                              \
		}                                                                        \
	}
#define SEND_OPCODES(tail)                                                               \
	DATA_OPCODES(SEND_MIDDLE, SEND_LAST##tail, SEND_FIRST, SEND_ONLY##tail)
#define WRITE_OPCODES(tail)                                                              \
	DATA_OPCODES(WRITE_MIDDLE, WRITE_LAST##tail, WRITE_FIRST, WRITE_ONLY##tail)
#define ONE_OPCODE(only) DATA_OPCODES(only, only, only, only)

/* Local operations send no packet: their opcodes are not used. */
#define NO_OPCODE DATA_OPCODES(SEND_ONLY, SEND_ONLY, SEND_ONLY, SEND_ONLY)

/* Two rows: of an opcode, and of the same request when a script of faults makes it fail. No post may
 * have the second opcode: its row has no flags and no types. */
#define ROW(op, kind, wc, opcodes, flags, form, types, needs_check)                      \
	[op] = {kind, wc, opcodes, flags, form, types, needs_check},                     \
	[WQE_FAULT | (op)] = {WR_FAULT, wc, NO_OPCODE, 0, POST_PLAIN, 0, false}

#define RELIABLE (1u << IBV_QPT_RC | 1u << IBV_QPT_XRC_SEND)
#define CONNECTED (RELIABLE | 1u << IBV_QPT_UC)
#define ALL (CONNECTED | 1u << IBV_QPT_UD)

const struct wr_row wr_rows[WR_ROWS] = {
	ROW(IBV_WR_SEND, WR_SEND, IBV_WC_SEND, SEND_OPCODES(), SEND_FLAGS, POST_PLAIN,
		ALL, false),
	ROW(IBV_WR_SEND_WITH_IMM, WR_SEND, IBV_WC_SEND, SEND_OPCODES(_IMM), SEND_FLAGS,
		POST_PLAIN, ALL, false),
	ROW(IBV_WR_SEND_WITH_INV, WR_SEND, IBV_WC_SEND, SEND_OPCODES(_INV), SEND_FLAGS,
		POST_INVALIDATE, RELIABLE, false),
	ROW(IBV_WR_RDMA_WRITE, WR_WRITE, IBV_WC_RDMA_WRITE, WRITE_OPCODES(), SEND_FLAGS,
		POST_RDMA, CONNECTED, false),
	ROW(IBV_WR_RDMA_WRITE_WITH_IMM, WR_WRITE, IBV_WC_RDMA_WRITE, WRITE_OPCODES(_IMM),
		SEND_FLAGS, POST_RDMA, CONNECTED, false),
	ROW(IBV_WR_RDMA_READ, WR_READ, IBV_WC_RDMA_READ, ONE_OPCODE(READ_REQUEST),
		READ_FLAGS, POST_RDMA, RELIABLE, false),
	ROW(IBV_WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC, IBV_WC_COMP_SWAP,
		ONE_OPCODE(COMPARE_SWAP), READ_FLAGS, POST_ATOMIC, RELIABLE, true),
	ROW(IBV_WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC, IBV_WC_FETCH_ADD,
		ONE_OPCODE(FETCH_ADD), READ_FLAGS, POST_ATOMIC, RELIABLE, true),
	ROW(IBV_WR_ATOMIC_WRITE, WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE,
		ONE_OPCODE(ATOMIC_WRITE), SEND_FLAGS, POST_RDMA, 1u << IBV_QPT_RC, true),
	/* Only ibv_wr_flush() posts one: its check refuses it. */
	ROW(WR_OPCODE_FLUSH, WR_FLUSH, WC_OPCODE_FLUSH, ONE_OPCODE(FLUSH), LOCAL_FLAGS,
		POST_RDMA, 1u << IBV_QPT_RC, true),
	ROW(IBV_WR_LOCAL_INV, WR_LOCAL_INV, IBV_WC_LOCAL_INV, NO_OPCODE, LOCAL_FLAGS,
		POST_LOCAL_INV, CONNECTED, false),
	ROW(IBV_WR_BIND_MW, WR_BIND_MW, IBV_WC_BIND_MW, NO_OPCODE, LOCAL_FLAGS, POST_BIND,
		CONNECTED, true),
};

static void
reth_fill(uint8_t *ext, const struct send_wqe *wqe, uint64_t offset, uint32_t len)
{
	frame_block reth = {rte_cpu_to_be_64(wqe->remote_va + offset),
		rte_cpu_to_be_64((uint64_t)wqe->rkey << 32 | len)};

	static_assert(sizeof(reth) == sizeof(struct reth), "va, rkey, length");
	memcpy(ext, &reth, sizeof(reth));
}

/* Annex A14: every XRC request packet begins with the SRQ that it is for. */
static void
xrceth_fill(uint8_t *ext, const struct send_wqe *wqe)
{
	struct xrceth *xrceth = (struct xrceth *)ext;

	xrceth->reserved = 0;
	be24_put(xrceth->srqn, wqe->srqn);
}

/* Returns where the RETH or AtomicETH goes. Fills in an XRCETH before it. */
static uint8_t *
main_hdr_begin(const struct send_wqe *wqe, uint8_t opcode, uint8_t *ext)
{
	if (unlikely(op_rows[opcode].hdrs & HDR_XRCETH))
		xrceth_fill(ext, wqe);
	return ext + op_rows[opcode].main_off;
}

/* Copies payload bytes [offset, offset + len) of the message to dst. Returns 0 or
 * -EACCES. */
static int
req_payload_copy(struct qp *qp, const struct send_wqe *wqe, uint64_t offset, uint8_t *dst,
	uint32_t len, struct icrc_sum *sum)
{
	struct requester *req = &qp->req;
	struct sge_pos pos = {0};
	struct sge_cursor c = request_cursor(qp, wqe, &pos);

	if (wqe->flags & IBV_SEND_INLINE) {
		memcpy(dst, wqe->inline_data + offset, len);
		return 0;
	}
	if (offset != 0)
		pos = likely(req->pos_psn == req->next_psn)
			      ? req->pos
			      : sge_seek(wqe->sge, wqe->num_sge, offset);
	if (unlikely(sge_gather(&c, dst, len, sum) != 0))
		return -EACCES;
	/* Only after success: if a probe of another message cannot be built, pos_psn
	 * still says that pos belongs to the next packet. */
	req->pos = pos;
	return 0;
}

/* Fills in the extended headers of a SEND or WRITE. */
static inline void
ext_fill(uint8_t *ext, const struct send_wqe *wqe, const struct op_row *op)
{
	if (unlikely(op->hdrs & HDR_XRCETH))
		xrceth_fill(ext, wqe);
	if (op->hdrs & HDR_RETH)
		reth_fill(ext + op->main_off, wqe, 0, wqe->len);
	if (op->hdrs & (HDR_IMM | HDR_IETH)) /* imm or invalidate_rkey */
		memcpy(ext + op->ext_len - sizeof(wqe->imm), &wqe->imm, sizeof(wqe->imm));
}

/* Builds a packet of a SEND, WRITE or ATOMIC_WRITE; see req_build(). from_mbuf: a constant. */
static __rte_always_inline bool
build_data(struct qp *qp, const struct send_wqe *wqe, uint32_t index, struct pkt *pkt,
	bool final, bool from_mbuf)
{
	struct requester *req = &qp->req;
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	uint32_t left = (uint32_t)(wqe->len - offset);
	uint32_t len = RTE_MIN(left, qp_pmtu(qp));
	bool last = left == len;
	bool rc = qp_reliable(qp);
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = req->next_psn,
		.pkey = qp->pkey,
		.opcode = wr_row(wqe)->opcode[index == 0][last] | qp->op_base,
		/* only where the responder writes a completion (IBA 9.2) */
		.solicited = last && (wqe->flags & IBV_SEND_SOLICITED) != 0 &&
			     wqe->opcode != IBV_WR_RDMA_WRITE &&
			     wqe->opcode != IBV_WR_ATOMIC_WRITE,
		.ack_req =
			rc && (final || (last && (wqe->flags & IBV_SEND_SIGNALED)) ||
				      (req->next_psn & (ACK_EVERY - 1)) == ACK_EVERY - 1),
	};
	const struct op_row *op = &op_rows[bth.opcode];
	struct icrc_sum sum;
	uint8_t *ext;

	ext = frame_begin(&qp->hdr, pkt, &bth, len);
	sum = frame_sum(&qp->hdr, pkt);
	if (unlikely(qp->multipath != 0))
		multipath_choose(qp, pkt, &sum);
	if (op->hdrs != 0)
		ext_fill(ext, wqe, op);
	if (from_mbuf)
		mbuf_send_copy(wqe, (uint32_t)offset, ext + op->ext_len, len, &sum);
	else if (len != 0 &&
		 req_payload_copy(qp, wqe, offset, ext + op->ext_len, len, &sum) != 0)
		return false;
	frame_end_sum(&qp->hdr, pkt, len, sum);
	req_advance(qp, 1);
	return true;
}

/* A packet of a request whose payload is in an mbuf. Out of line: it keeps req_build() as it is. */
static __rte_noinline bool
build_from_mbuf(struct qp *qp, const struct send_wqe *wqe, uint32_t index,
	struct pkt *pkt, bool final)
{
	return build_data(qp, wqe, index, pkt, final, true);
}

/* Packets that a READ request asks for, at most. A responder queues parts of the first RES_PARTS
 * packets only. With max_rd_atomic of 2 or more the QP sends the next request while the peer
 * answers this one: two or four of them share QP_MAX_UNACKED. With congestion control a request
 * asks for less if the window is small, because its responses come at once: up to 8 requests
 * share the window. */
static uint32_t
read_request_max(const struct qp *qp)
{
	unsigned reads = qp->params.max_rd_atomic;
	unsigned shift = reads < 2 ? 0 : reads < 4 ? 1 : reads < 8 ? 2 : 3;
	uint32_t most = QP_MAX_UNACKED >> (shift < 2 ? 1 : 2), part;

	static_assert(QP_MAX_UNACKED >> 1 <= RES_PARTS, "any part of a READ can wait");
	if (qp->peer == NULL || !cc_is_on(qp->peer->read.cc))
		return most;
	part = cc_window(qp->peer->read.cc) >> shift;
	return RTE_MIN(RTE_MAX(part, 1u), most);
}

/* Returns how many packets the READ request from next_psn on asks for. left: the rest of
 * the READ. A request that is sent again ends where it did: the first answer may still
 * come. */
static uint32_t
read_request_packets(struct qp *qp, uint32_t left)
{
	struct requester *req = &qp->req;
	struct psn_bits *ends = sq_read_ends(&qp->sq);
	uint32_t psn = req->next_psn, n = 1;

	if (psn_diff(psn, req->sent_psn) < 0) {
		while (n < left && !psn_bit(ends, psn + n - 1))
			n++;
		return n;
	}
	n = RTE_MIN(read_request_max(qp), left);
	if (unlikely(qp->read_repeated)) {
		/* New PSNs have no repeats. */
		psn_bits_clear(&qp->sq.read_bits->repeat_first, psn, n);
		psn_bits_clear(&qp->sq.read_bits->repeat_last, psn, n);
	}
	psn_bits_clear(ends, psn, n - 1);
	psn_bit_set(ends, psn + n - 1);
	return n;
}

/* Builds a READ request for these packets, the first of which is number `index` of the
 * READ. */
static void
read_request_fill(struct qp *qp, const struct send_wqe *wqe, uint32_t psn, uint32_t index,
	uint32_t packets, struct pkt *pkt)
{
	struct bth_fields bth = qp_bth(qp, psn, OPCODE_RC_READ_REQUEST);
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	uint64_t end = (uint64_t)(index + packets) << qp->pmtu_shift;
	uint32_t len = (uint32_t)(RTE_MIN(end, (uint64_t)wqe->len) - offset);

	bth.ack_req = true;
	reth_fill(main_hdr_begin(wqe, bth.opcode, frame_begin(&qp->hdr, pkt, &bth, 0)),
		wqe, offset, len);
	frame_end(&qp->hdr, pkt, 0);
}

/* Builds a READ request for packets from index on. */
static void
build_read(struct qp *qp, const struct send_wqe *wqe, uint32_t index, struct pkt *pkt)
{
	const struct psn_range *range = sq_psn_range(&qp->sq, qp->req.next_idx);
	uint32_t left = (psn_range_end(range) - qp->req.next_psn) & PSN_MASK;
	uint32_t packets = read_request_packets(qp, left);

	read_request_fill(qp, wqe, qp->req.next_psn, index, packets, pkt);
	req_advance(qp, packets);
}

void RARE
req_build_repeat(struct qp *qp, uint32_t psn, uint32_t packets, struct pkt *pkt)
{
	uint32_t idx = qp->req.una_idx, first;

	while (psn_range_before(sq_psn_range(&qp->sq, idx), psn))
		idx++;
	first = sq_psn_range(&qp->sq, idx)->first_psn;
	read_request_fill(
		qp, sq_slot(&qp->sq, idx), psn, (psn - first) & PSN_MASK, packets, pkt);
}

static void
build_atomic(struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt)
{
	bool add = wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct bth_fields bth = qp_bth(qp, qp->req.next_psn, wr_row(wqe)->opcode[1][1]);
	struct atomic_eth *eth;

	bth.ack_req = true;
	eth = (struct atomic_eth *)main_hdr_begin(
		wqe, bth.opcode, frame_begin(&qp->hdr, pkt, &bth, 0));
	eth->va = rte_cpu_to_be_64(wqe->remote_va);
	eth->rkey = rte_cpu_to_be_32(wqe->rkey);
	/* ibv_post_send(3): compare_add is what to compare with, or what to add. */
	eth->swap_add =
		rte_cpu_to_be_64(add ? wqe->atomic.compare_add : wqe->atomic.swap);
	eth->compare = rte_cpu_to_be_64(add ? 0 : wqe->atomic.compare_add);
	frame_end(&qp->hdr, pkt, 0);
	req_advance(qp, 1);
}

static void
build_flush(struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt)
{
	struct bth_fields bth = qp_bth(qp, qp->req.next_psn, wr_row(wqe)->opcode[1][1]);
	uint8_t *ext;

	bth.ack_req = true;
	ext = frame_begin(&qp->hdr, pkt, &bth, 0);
	memcpy(ext, &wqe->feth, sizeof(wqe->feth));
	reth_fill(ext + sizeof(wqe->feth), wqe, 0, wqe->len);
	frame_end(&qp->hdr, pkt, 0);
	req_advance(qp, 1);
}

/* Builds a packet without payload. */
static __rte_noinline void
build_other(struct qp *qp, const struct send_wqe *wqe, uint32_t index, struct pkt *pkt)
{
	unsigned kind = wr_row(wqe)->kind;
	uint32_t psn = qp->req.next_psn;

	if (kind == WR_READ)
		build_read(qp, wqe, index, pkt);
	else if (kind == WR_ATOMIC)
		build_atomic(qp, wqe, pkt);
	else
		build_flush(qp, wqe, pkt);
	qp->req.reads++;
	req_response_requested(qp, (qp->req.next_psn - psn) & PSN_MASK);
}

bool
req_build(struct qp *qp, struct pkt *pkt, bool final)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->next_idx);
	uint32_t index =
		(req->next_psn - sq_psn_range(&qp->sq, req->next_idx)->first_psn) &
		PSN_MASK;
	unsigned kind = wr_row(wqe)->kind;
	bool atomic_write = kind == WR_ATOMIC_WRITE;

	if (unlikely(kind >= WR_READ && !atomic_write)) {
		build_other(qp, wqe, index, pkt);
		return true;
	}
	if (unlikely(wqe->flags & WQE_MBUF))
		return build_from_mbuf(qp, wqe, index, pkt, final);
	if (unlikely(!build_data(qp, wqe, index, pkt, final || atomic_write, false)))
		return false;
	if (unlikely(atomic_write)) {
		req->reads++;
		req_response_requested(qp, 1);
	}
	return true;
}
