/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The responder's READs and atomics (IBA 9.4.4, 9.4.5, 9.7.7). Each takes a responder
 * resource of a ring of max_dest_rd_atomic. The resources before res_next are fully
 * answered and serve duplicates (C9-150). A duplicate moves res_next back. Resources
 * behind it that were fully answered are skipped, unless they are requested again too.
 */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "qp/counting.h"
#include "qp/read_parts.h"
#include "qp/resp.h"

#define PD_NONE UINT32_MAX /* no key has this PD */

static struct resp_res *
res_at(const struct qp *qp, uint32_t index)
{
	/* The number of slots is a power of two: indices run freely and wrap at 2^32. */
	return &qp->resp.res[index & (rte_align32pow2(qp->resp.res_max) - 1)];
}

static bool
is_atomic(unsigned kind)
{
	return kind == OP_COMPARE_SWAP || kind == OP_FETCH_ADD;
}

static size_t
res_ring_bytes(uint32_t depth)
{
	return depth != 0 ? rte_align32pow2(depth) * sizeof(struct resp_res) : 0;
}

/* Control path. */

/* Keeps the newest: a smaller ring forgets the oldest, as would happen in time. */
int
resp_set_depth(struct qp *qp, uint32_t depth)
{
	struct responder *resp = &qp->resp;
	uint32_t keep = RTE_MIN(resp->res_count, depth);
	struct resp_res *res = NULL;

	if (depth == resp->res_max)
		return 0;
	if (depth != 0) {
		res = alloc_get(qp->sq.mem, "resp_res", res_ring_bytes(depth));
		if (res == NULL)
			return -ENOMEM;
	}
	for (uint32_t i = resp->res_end - keep; i != resp->res_end; i++)
		res[i & (rte_align32pow2(depth) - 1)] = *res_at(qp, i);
	if (resp->res_end - resp->res_next > keep)
		resp->res_next = resp->res_end - keep;
	if (resp->res_end - resp->res_done > keep)
		resp->res_done = resp->res_end - keep;
	alloc_put(qp->sq.mem, resp->res, res_ring_bytes(resp->res_max));
	resp->res = res;
	resp->res_max = depth;
	resp->res_count = keep;
	resp_due_changed(qp);
	return 0;
}

/* Data path. */

/* True if a FLUSH is not answered yet. */
static bool
flush_pending(const struct qp *qp)
{
	for (uint32_t i = qp->resp.res_done; i != qp->resp.res_end; i++) {
		if (res_at(qp, i)->kind == OP_FLUSH)
			return true;
	}
	return false;
}

/* Refuses a READ or an atomic when no resource is free (C9-89; row 11 of
 * docs/protocol.md 8.2). */
enum verdict
resp_depth_check(struct qp *qp, const struct pkt_view *v)
{
	const struct responder *resp = &qp->resp;

	/* Not by res_next: that moves back for a duplicate, and a peer that sends a new
	 * request has the answer already. */
	if (likely(resp_unanswered(qp) < resp->res_max))
		return VERDICT_GO;
	/* A peer may not count FLUSHes (rxe): drop it, as if it were lost. */
	if (resp->res_max != 0 && (v->op->kind == OP_FLUSH || flush_pending(qp))) {
		qp->shared->stats->drop[DROP_no_resource]++;
		return VERDICT_DROP;
	}
	return FAULT_DEPTH;
}

enum verdict
resp_res_add(struct qp *qp, const struct resp_res *res)
{
	struct responder *resp = &qp->resp;
	struct resp_res *slot = res_at(qp, resp->res_end);
	enum verdict verdict;

	if (resp->res_end - resp->res_next == resp->res_max)
		/* a repeated response that the peer no longer waits for */
		resp->res_next++;
	resp_message_done(qp);
	*slot = *res;
	slot->msn = resp->msn;
	slot->end = res->packets;
	slot->stop = res->len;
	resp->res_end++;
	resp_due_changed(qp);
	resp->res_count = RTE_MIN(resp->res_count + 1, resp->res_max);
	verdict = resp_advance(qp, psn_add(res->first_psn, res->packets));
	if (likely(resp->wait == RESP_OPEN))
		qp->aeth_pending = 0;
	resp_res_expire(qp);
	return verdict;
}

enum verdict
resp_read(struct qp *qp, const struct pkt_view *v)
{
	const struct reth *reth = view_reth(v);
	struct resp_res res = {
		.first_psn = v->psn,
		.kind = OP_READ,
		.srqn = qp->resp.srqn,
		.pd = qp->pd,
		.va = rte_be_to_cpu_64(reth->va),
		.rkey = rte_be_to_cpu_32(reth->rkey),
		.len = rte_be_to_cpu_32(reth->len),
	};
	enum verdict verdict = resp_depth_check(qp, v);

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	if (res.len > MSG_MAX || v->payload_len != 0)
		return FAULT_PACKET_LENGTH;
	if (res.len != 0 && key_check_remote(qp->shared->keys, res.rkey, qp->pd, qp->qpn,
				    res.va, res.len, 0, IBV_ACCESS_REMOTE_READ) == NULL)
		return FAULT_RKEY;
	res.packets = RTE_MAX(
		(uint32_t)(((uint64_t)res.len + qp_pmtu(qp) - 1) >> qp->pmtu_shift), 1u);
	if (unlikely(qp->resp.counts))
		qp_count_remote(qp, COUNTED_REMOTE_READ, res.len);
	return resp_res_add(qp, &res);
}

/* Atomic with respect to the application and other engines (IBA 9.4.5: at least to other
 * QPs of this HCA). */
static uint64_t
atomic_execute(uint64_t *word, const struct atomic_eth *eth, unsigned kind)
{
	uint64_t operand = rte_be_to_cpu_64(eth->swap_add);
	uint64_t expected;

	if (kind == OP_FETCH_ADD)
		return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
	expected = rte_be_to_cpu_64(eth->compare);
	__atomic_compare_exchange_n(
		word, &expected, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}

enum verdict
resp_atomic(struct qp *qp, const struct pkt_view *v)
{
	const struct atomic_eth *eth =
		(const struct atomic_eth *)(v->ext + v->op->main_off);
	uint64_t va = rte_be_to_cpu_64(eth->va);
	struct resp_res res = {.first_psn = v->psn, .packets = 1, .len = 8};
	enum verdict verdict = resp_depth_check(qp, v);
	uint8_t *word;

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	if (v->payload_len != 0)
		return FAULT_PACKET_LENGTH;
	word = key_check_remote(qp->shared->keys, rte_be_to_cpu_32(eth->rkey), qp->pd,
		qp->qpn, va, 8, 8, IBV_ACCESS_REMOTE_ATOMIC);
	if (word == NULL)
		return FAULT_RKEY;
	/* C9-91: the address is aligned, and so must be the memory that an iova maps it
	 * to. */
	if (va % 8 != 0 || (uintptr_t)word % 8 != 0)
		return FAULT_ALIGNMENT;
	res.kind = v->op->kind;
	res.srqn = qp->resp.srqn;
	res.value = atomic_execute((uint64_t *)word, eth, v->op->kind);
	return resp_res_add(qp, &res);
}

/* ---- Duplicates ---- */

/* PSNs repeat after 2^24 packets. A quarter of that is further than any peer goes back,
 * and leaves room for the 2^23 packets of the longest READ. */
#define RES_AGE_MAX (UINT32_C(1) << 22)

void
resp_res_expire(struct qp *qp)
{
	struct responder *resp = &qp->resp;

	while (resp->res_count > resp->res_end - resp->res_next) {
		const struct resp_res *res = res_at(qp, resp->res_end - resp->res_count);
		uint32_t end = psn_add(res->first_psn, res->packets);

		if (((resp->epsn - end) & PSN_MASK) < RES_AGE_MAX)
			return;
		resp->res_count--;
	}
}

bool
resp_res_cover(const struct qp *qp, uint32_t psn)
{
	const struct responder *resp = &qp->resp;

	for (uint32_t i = resp->res_next; i != resp->res_end; i++) {
		const struct resp_res *res = res_at(qp, i);

		if (res->next != res->end && psn_diff(res->first_psn, psn) > 0)
			return true;
	}
	return false;
}

/* Returns the resource that has this PSN, with its index; NULL: it was forgotten. */
static struct resp_res *
res_find(const struct qp *qp, uint32_t psn, uint32_t *index)
{
	const struct responder *resp = &qp->resp;

	for (uint32_t i = resp->res_end - resp->res_count; i != resp->res_end; i++) {
		struct resp_res *res = res_at(qp, i);

		if (((psn - res->first_psn) & PSN_MASK) < res->packets) {
			*index = i;
			return res;
		}
	}
	return NULL;
}

uint32_t
resp_ack_limit(const struct qp *qp, uint32_t psn)
{
	const struct responder *resp = &qp->resp;
	uint32_t age = (resp->epsn - psn) & PSN_MASK;

	/* A peer may take an acknowledgement of a READ's PSN for its response, which may
	 * be lost: name at most the packet before the next READ. Compared from ePSN: a
	 * READ can be half of all PSNs long. */
	for (uint32_t i = resp->res_end - resp->res_count; i != resp->res_end; i++) {
		uint32_t first = res_at(qp, i)->first_psn;

		if (((resp->epsn - first) & PSN_MASK) < age)
			return psn_add(first, PSN_MASK);
	}
	return psn_add(resp->epsn, PSN_MASK);
}

/* True if the duplicate requests a part of the original READ. *end, *stop: where that
 * part ends, in packets and bytes. */
static bool
read_part(const struct qp *qp, const struct resp_res *res, const struct pkt_view *v,
	uint32_t from, uint32_t *end, uint32_t *stop)
{
	const struct reth *reth = view_reth(v);
	uint64_t offset = (uint64_t)from << qp->pmtu_shift;
	uint32_t len = rte_be_to_cpu_32(reth->len);
	uint32_t packets = RTE_MAX(
		(uint32_t)(((uint64_t)len + qp_pmtu(qp) - 1) >> qp->pmtu_shift), 1u);

	if (res->kind != OP_READ || rte_be_to_cpu_32(reth->rkey) != res->rkey ||
		rte_be_to_cpu_64(reth->va) != res->va + offset || len > res->len - offset)
		return false;
	*end = from + packets;
	*stop = (uint32_t)offset + len;
	return true;
}

/* A peer that requests this one again accepts no later response before it. Later
 * responses that were partly sent therefore start anew. */
static void
restart_behind(struct qp *qp, uint32_t index)
{
	struct responder *resp = &qp->resp;

	for (uint32_t i = index + 1; i != resp->res_end; i++) {
		struct resp_res *later = res_at(qp, i);

		if (later->next == later->start || later->next == later->end)
			continue;
		later->next = later->start;
		later->msn = resp->msn;
	}
}

void
resp_res_replay(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	uint32_t index, from, end = 1, stop = 0;
	struct resp_res *res;

	qp->stats.duplicates++;
	qp->shared->stats->duplicates++;
	res = res_find(qp, v->psn, &index);
	if (res == NULL)
		return; /* C9-150: forgotten; the peer had more outstanding than agreed */
	from = (v->psn - res->first_psn) & PSN_MASK;
	/* All but a READ are identified by their PSN alone. */
	if (v->op->kind == OP_READ ? !read_part(qp, res, v, from, &end, &stop)
				   : is_atomic(res->kind) != is_atomic(v->op->kind) ||
					     res->kind == OP_READ)
		return;
	/* This part is being sent already, or waits. */
	if ((res->next != res->end && res->next <= from && res->end >= end &&
		    res->stop >= stop) ||
		part_queue(qp, res, from, end, stop))
		return;
	if (end == res->packets)
		restart_behind(qp, index);
	res->start = res->next = from;
	res->end = end;
	res->stop = stop;
	res->msn = resp->msn;
	if ((int32_t)(resp->res_next - index) > 0)
		resp->res_next = index;
	resp_due_changed(qp);
	/* The response acknowledges what lies before it. */
	if (qp->aeth_pending == AETH_PENDING_ACK &&
		psn_diff(res->first_psn, resp->ack_psn) > 0)
		qp->aeth_pending = 0;
}

void
resp_res_revoke(struct qp *qp, uint32_t srqn)
{
	const struct responder *resp = &qp->resp;

	for (uint32_t i = resp->res_end - resp->res_count; i != resp->res_end; i++) {
		if (res_at(qp, i)->srqn == srqn)
			res_at(qp, i)->pd = PD_NONE;
	}
}

/* ---- Responses ---- */

static void
atomic_response_build(struct qp *qp, const struct resp_res *res, struct pkt *pkt)
{
	struct bth_fields bth = qp_bth(qp, res->first_psn, OPCODE_RC_ATOMIC_ACKNOWLEDGE);
	uint8_t *ext = frame_begin(&qp->hdr, pkt, &bth, 0);
	uint64_t value = rte_cpu_to_be_64(res->value);

	aeth_put(ext, AETH_ACK, res->msn);
	memcpy(ext + sizeof(struct aeth), &value, sizeof(value));
	frame_end(&qp->hdr, pkt, 0);
}

/*
 * Answers a duplicate READ by a NAK, which ends its response. The QP does not go to ERR:
 * the READ was fully answered before, and its memory is gone. The duplicate may be a late
 * copy: the requester has its data, and the application of this host has freed the memory
 * since. If the requester still waits for the data, the NAK moves its QP to ERR.
 */
static void RARE
read_nak_build(struct qp *qp, struct resp_res *res, struct pkt *pkt)
{
	struct bth_fields bth =
		qp_bth(qp, psn_add(res->first_psn, res->next), OPCODE_RC_ACKNOWLEDGE);

	aeth_put(frame_begin(&qp->hdr, pkt, &bth, 0), AETH_NAK_ACCESS, res->msn);
	frame_end(&qp->hdr, pkt, 0);
	res->next = res->end - 1;
}

/* Builds packet res->next of a READ response; for ATOMIC_WRITE and FLUSH the empty one
 * (annex A19). Builds nothing if the memory is gone. */
static enum verdict
read_response_build(struct qp *qp, struct resp_res *res, struct pkt *pkt)
{
	static const uint8_t opcodes[2][2] = {
		{OPCODE_RC_READ_RESPONSE_MIDDLE, OPCODE_RC_READ_RESPONSE_LAST},
		{OPCODE_RC_READ_RESPONSE_FIRST, OPCODE_RC_READ_RESPONSE_ONLY},
	};
	uint64_t offset = (uint64_t)res->next << qp->pmtu_shift;
	uint32_t len = (uint32_t)RTE_MIN(res->stop - offset, (uint64_t)qp_pmtu(qp));
	bool first = res->next == res->start, last = res->next + 1 == res->end;
	struct bth_fields bth =
		qp_bth(qp, psn_add(res->first_psn, res->next), opcodes[first][last]);
	const uint8_t *from = NULL;
	struct icrc_sum sum;
	uint8_t *ext;

	if (len != 0) {
		from = key_check_remote(qp->shared->keys, res->rkey, res->pd, qp->qpn,
			res->va + offset, len, len, IBV_ACCESS_REMOTE_READ);
		if (unlikely(from == NULL) &&
			(int32_t)(qp->resp.res_next - qp->resp.res_done) < 0) {
			read_nak_build(qp, res, pkt);
			return VERDICT_GO;
		}
		if (unlikely(from == NULL))
			return FAULT_RKEY;
	}
	ext = frame_begin(&qp->hdr, pkt, &bth, len);
	if (first || last)
		aeth_put(ext, AETH_ACK, res->msn);
	sum = frame_sum(&qp->hdr, pkt);
	if (len != 0)
		payload_copy_sum(
			&sum, frame_payload(&qp->hdr, pkt, bth.opcode), from, len);
	frame_end_sum(&qp->hdr, pkt, len, sum);
	return VERDICT_GO;
}

static struct resp_res *
res_current(struct qp *qp)
{
	struct responder *resp = &qp->resp;

	while (resp_res_pending(qp)) {
		struct resp_res *res = res_at(qp, resp->res_next);

		if (res->next != res->end)
			return res;
		if ((int32_t)(resp->res_next + 1 - resp->res_done) > 0)
			resp->res_done = resp->res_next + 1;
		if (unlikely(part_next(qp, res)))
			return res;
		resp->res_next++;
	}
	return NULL;
}

struct burst
resp_res_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	struct responder *resp = &qp->resp;
	struct burst burst = {0, VERDICT_GO};
	struct resp_res *res;

	/* res_current() first: it steps past answered resources even when n packets are
	 * built. */
	while ((res = res_current(qp)) != NULL && burst.built < n) {
		if (is_atomic(res->kind))
			atomic_response_build(qp, res, &pkts[burst.built]);
		else
			burst.verdict = read_response_build(qp, res, &pkts[burst.built]);
		if (unlikely(burst.verdict != VERDICT_GO)) {
			/* The NAK replaces the remaining responses. */
			resp->ack_psn = psn_add(res->first_psn, res->next);
			resp->res_next = resp->res_done = resp->res_end;
			break;
		}
		burst.built++;
		res->next++;
	}
	resp_due_changed(qp);
	return burst;
}
