/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Receive path: burst, parse, find the QP, dispatch. */
#include <string.h>

#include <rte_prefetch.h>

#include "engine/clock_cycles.h"
#include "engine/pass.h"
#include "engine/sched.h"
#include "qp/mbuf_receive.h"
#include "wire/ext_mad.h"

#define RELEASE_LATER_MAX 4 /* largest burst released in the next pass */

/* A burst whose first frame is large is processed a few frames at a time with deferred
 * ICRC. Direct placement can then check and copy a payload in one pass. Where it is not
 * allowed, the copy finds the payload in the L1 cache, where the check has left it. */
#define LARGE 1024    /* bytes of a frame */
#define LARGE_GROUP 4 /* frames */

/* ---- QP 1 ---- */

static enum drop_reason
gsi_rx_check(
	const struct dev *dev, const struct pkt_view *view, const struct gsi_msg *msg)
{
	enum drop_reason why;

	if (gid_find(dev->gids, DEV_GIDS, msg->sgid) < 0)
		return DROP_address;
	why = gsi_admit(view);
	if (why == DROP_none && dev->gsi->user.rx == NULL &&
		!ext_mad_is_class(view->payload))
		return DROP_qpn;
	return why;
}

static void
gsi_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view, uint64_t now)
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
	/* Answers go back to where it came from. */
	net_hint(dev->net, msg.dgid, pkt->data + 6, now);
	if (ext_mad_is_class(msg.bytes))
		engine_ext_rx(e, &msg, now);
	else
		dev->gsi->user.rx(dev->gsi->user.arg, &msg, now);
}

/* ---- Parse and dispatch ---- */

/* The DestQP is not in the QP table: a CNP, QP 1, a multicast group, or unknown. */
static void
packet_without_qp(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	uint64_t now)
{
	if (view->op->kind == OP_CNP)
		e->stats.drop[DROP_cnp]++;
	else if (view->dest_qpn == GSI_QPN)
		gsi_rx(e, pkt, view, now);
	else if (view->dest_qpn != QPN_MULTICAST)
		e->stats.drop[DROP_qpn]++;
	else if (!engine_group_rx(e, pkt, view, NULL, now))
		e->stats.drop[DROP_group]++;
}

/* Prefetches what processing a packet reads of the QP: the header template, whose
 * addresses qp_admit() compares, the counters, which share a line with its end, and the
 * state of the requester or the responder. */
static inline void
qp_prefetch_rx(const struct qp *qp, bool response)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->hdr);
	rte_prefetch0(&qp->hdr.len);
	if (response) {
		rte_prefetch0(&qp->sched.ready_link);
		rte_prefetch0(&qp->req);
		rte_prefetch0((const uint8_t *)&qp->req + LINE_SIZE);
		rte_prefetch0(&qp->sq);
	} else {
		rte_prefetch0(&qp->resp);
		rte_prefetch0(&qp->wqe_one);
	}
}

static __rte_always_inline void
packet_parse(struct engine *e, const struct pkt *pkt, struct rx_packet *p,
	bool icrc_deferred, uint64_t now)
{
	unsigned why = icrc_deferred ? pkt_parse_headers(pkt, e->vlan, &p->view)
				     : pkt_parse(pkt, e->vlan, &p->view);

	p->qp = NULL;
	if (unlikely(why != DROP_none)) {
		if (why == PARSE_OTHER)
			port_io_net_rx(&e->io, pkt, now);
		else
			e->stats.drop[why]++;
		return;
	}
	p->qp = qp_table_get(&e->dev->qps, p->view.dest_qpn);
	if (unlikely(p->qp == NULL)) {
		if (icrc_deferred && !icrc_check(&p->view))
			e->stats.drop[DROP_icrc]++;
		else
			packet_without_qp(e, pkt, &p->view, now);
		return;
	}
	qp_prefetch_rx(p->qp, op_is_response(p->view.op));
}

static __rte_always_inline void
packet_dispatch(struct engine *e, struct qp *qp, struct pkt_view *view,
	bool icrc_deferred, uint64_t now)
{
	if (icrc_deferred && unlikely(!qp_icrc_check(qp, view))) {
		e->stats.drop[DROP_icrc]++;
		return;
	}
	qp_rx(qp, view, now);
	if (op_is_response(view->op))
		engine_schedule(e, qp);
	else
		engine_schedule_responder(e, qp);
}

/* Parses all frames, then dispatches them to their QPs. Moves the frames that were not
 * handed to another engine to the front and returns their number: the caller releases
 * them, also those that have no owner any more, because a QP has taken it (mbuf_receive.h).
 * icrc_deferred: the ICRC is checked at dispatch, or by the engine that a frame is
 * handed to, which parses it again. */
static __rte_always_inline unsigned
packets_process(
	struct engine *e, struct pkt *pkts, unsigned n, bool icrc_deferred, uint64_t now)
{
	struct rx_packet parsed[PKT_BURST];
	struct rx_burst *burst = &e->shared.burst;
	unsigned kept = 0;
	bool wanted;

	CYCLES_START(since);
	for (unsigned i = 0; i < n; i++) {
		if (i + 2 < n) {
			rte_prefetch0(pkts[i + 2].data);
			rte_prefetch0(pkts[i + 2].data + LINE_SIZE);
		}
		packet_parse(e, &pkts[i], &parsed[i], icrc_deferred, now);
	}
	CYCLES_LAP(e, parse, since);
	wanted = __atomic_load_n(&burst->wanted, __ATOMIC_RELAXED);
	if (unlikely(wanted)) {
		burst->packets = parsed;
		burst->end = parsed + n;
		burst->frames = pkts;
		burst->checked = !icrc_deferred;
	}
	for (unsigned i = 0; i < n; i++) {
		struct qp *qp = parsed[i].qp;

		/* That of another engine may move, or be destroyed: nothing else of it is read. */
		struct engine *of = qp != NULL ? qp_engine_now(qp) : NULL;

		if (unlikely(of != NULL && of != e)) {
			if (engine_hand_off(e, of, &pkts[i]))
				continue;
		} else if (likely(qp != NULL)) {
			packet_dispatch(e, qp, &parsed[i].view, icrc_deferred, now);
		}
		if (unlikely(kept != i))
			pkts[kept] = pkts[i];
		kept++;
	}
	if (unlikely(wanted))
		burst->end = NULL;
	CYCLES_LAP(e, dispatch, since);
	return kept;
}

/* As packets_process(), with deferred ICRC, LARGE_GROUP frames at a time. */
static unsigned
large_packets_process(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i += LARGE_GROUP) {
		unsigned some = packets_process(
			e, pkts + i, RTE_MIN(n - i, LARGE_GROUP + 0u), true, now);

		if (unlikely(kept != i))
			memmove(pkts + kept, pkts + i, some * sizeof(pkts[0]));
		kept += some;
	}
	return kept;
}

static unsigned
burst_process_plain(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	return likely(pkts[0].len < LARGE) ? packets_process(e, pkts, n, false, now)
					   : large_packets_process(e, pkts, n, now);
}

/* Other engines have taken the room of completions that were gathered. */
static void RARE
lost_completions_report(struct engine *e)
{
	struct cq_gather *gather = &e->shared.gather;

	for (uint32_t i = 0; i < gather->lost; i++) {
		const struct cqe *cqe = &gather->cqes[i];
		struct qp *qp = qp_table_get(&e->dev->qps, cqe->qpn);

		mbuf_cqe_drop(qp, cqe);
		qp_completion_lost(qp, (cqe->opcode & IBV_WC_RECV) != 0);
		engine_schedule(e, qp);
	}
	gather->lost = 0;
}

static_assert(
	RECV_CLAIM_MAX == PKT_BURST, "a claim has room for the messages of a burst");

/* With several engines, which may share CQs and SRQs. */
static __rte_noinline unsigned
burst_process_gathering(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned kept;

	cq_gather_begin(&e->shared.gather);
	kept = likely(pkts[0].len < LARGE) ? packets_process(e, pkts, n, false, now)
					   : large_packets_process(e, pkts, n, now);
	cq_gather_end(&e->shared.gather);
	if (unlikely(e->shared.gather.lost != 0))
		lost_completions_report(e);
	return kept;
}

static inline unsigned
burst_process(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	return unlikely(e->dev->engine_count > 1)
		       ? burst_process_gathering(e, pkts, n, now)
		       : burst_process_plain(e, pkts, n, now);
}

static void
burst_release(struct engine *e, struct pkt *pkts, unsigned n)
{
	CYCLES_START(since);
	e->io.queue.ops->rx_release(e->io.queue.queue, pkts, n);
	CYCLES_LAP(e, rx_release, since);
}

void
engine_rx_process(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	burst_release(e, pkts, burst_process(e, pkts, n, now));
}

void
engine_rx_fini(struct engine *e)
{
	burst_release(e, e->unreleased, e->unreleased_count);
	e->unreleased_count = 0;
}

/* A small burst is released at the start of the next pass, so that completions become
 * visible sooner. Not in manual progress, where there may be no next pass for long. */
static bool
can_release_later(const struct engine *e)
{
	return e->unreleased_count <= RELEASE_LATER_MAX && e->progress_thread == NULL;
}

/* Processes the packets that other engines have handed off, and returns their number.
 * emptied: this pass has emptied the receive queue. If it empties the rings, too, sets
 * polled_ns. */
static unsigned
handoff_rx(struct engine *e, uint64_t now, bool emptied)
{
	struct pkt pkts[PKT_BURST];
	unsigned moved = 0;

	for (unsigned i = 0; i < e->dev->engine_count; i++) {
		unsigned n;

		if (e->handoff[i] == NULL)
			continue;
		n = rte_ring_sc_dequeue_burst_elem(
			e->handoff[i], pkts, sizeof(pkts[0]), PKT_BURST, NULL);
		if (n != 0)
			engine_rx_process(e, pkts, n, now);
		emptied = emptied && n < PKT_BURST;
		moved += n;
	}
	if (likely(emptied))
		e->shared.polled_ns = now;
	return moved;
}

unsigned
engine_rx(struct engine *e, uint64_t now)
{
	struct pkt *pkts = e->unreleased;
	unsigned n;

	if (unlikely(e->unreleased_count != 0))
		engine_rx_fini(e);
	CYCLES_START(since);
	n = e->io.queue.ops->rx_burst(e->io.queue.queue, pkts, PKT_BURST);
	if (n != 0) {
		uint64_t bytes = 0;

		e->unanswered = e->tells_answers;
		CYCLES_LAP(e, rx_burst, since);
		rte_prefetch0(pkts[0].data);
		for (unsigned i = 0; i < n; i++) {
			bytes += pkts[i].len;
			e->stats.rx_linearised +=
				(pkts[i].flags & PKT_RX_LINEARISED) != 0;
		}
		e->stats.rx_packets += n;
		e->stats.rx_bytes += bytes;
		e->unreleased_count = burst_process(e, pkts, n, now);
		if (!can_release_later(e))
			engine_rx_fini(e);
	}
	/* polled_ns changes only after the last packet of this pass: the samples of these
	 * packets need its value of the pass before. */
	if (e->dev->engine_count > 1)
		return n + handoff_rx(e, now, n < PKT_BURST);
	if (likely(n < PKT_BURST))
		e->shared.polled_ns = now;
	return n;
}
