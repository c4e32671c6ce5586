/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include <rte_mbuf_core.h>

#include "qp/mbuf_receive.h"

/* In the room of the receive's SGE. */
struct chain {
	uint64_t posted; /* wr_id of the receive */
	struct rte_mbuf *last;
};
static_assert(
	sizeof(struct chain) <= sizeof(struct sge), "a receive has room for one SGE");

static inline struct chain *
chain_of(const struct qp *qp)
{
	return (struct chain *)qp->wqe->sge;
}

static inline struct rte_mbuf *
mbuf_of(uint64_t wr_id)
{
	return (struct rte_mbuf *)(uintptr_t)wr_id;
}

/* Returns the frame of a packet of the burst. NULL: it is not one of it, or its payload is elsewhere. */
static struct pkt *
frame_of(const struct rx_burst *burst, const struct pkt_view *v)
{
	const struct rx_packet *packet = rx_burst_packet(burst, v);

	return packet != NULL && !v->payload_apart
		       ? &burst->frames[packet - burst->packets]
		       : NULL;
}

/* Returns whether a buffer of the mempool may be taken from it for good. The others are for frames of all
 * QPs. */
static bool
spare_take(const struct mbuf_state *state, struct mbuf_spare *spare)
{
	uint32_t available;

	if (unlikely(spare->count == 0)) {
		available = state->ops->available(spare->pool);
		if (available <= state->reserve)
			return false;
		spare->count = RTE_MIN(available - state->reserve, MBUF_SPARE_MOST + 0u);
	}
	spare->count--;
	return true;
}

static void RARE
frame_pool_change(struct mbuf_state *state, const struct rte_mempool *pool)
{
	state->frames = (struct mbuf_spare){.pool = pool};
	state->frames_are_given =
		!state->ops->is_own(pool) &&
		(state->frame_pool == NULL || pool == state->frame_pool);
}

/* True if the frame has no other holder. */
static bool
frame_is_free(const struct rte_mbuf *m)
{
	/* Relaxed: of one holder only that one changes it. */
	return RTE_MBUF_DIRECT(m) && m->nb_segs == 1 &&
	       __atomic_load_n(&m->refcnt, __ATOMIC_RELAXED) == 1;
}

/* Takes the frame from the burst. NULL: it must be copied. */
static struct rte_mbuf *
frame_take(struct qp_shared *shared, const struct pkt_view *v)
{
	struct mbuf_state *state = &shared->mbuf;
	struct pkt *frame = frame_of(&shared->burst, v);
	struct rte_mbuf *m;

	if (unlikely(frame == NULL))
		return NULL;
	m = frame->owner;
	if (unlikely(m->pool != state->frames.pool))
		frame_pool_change(state, m->pool);
	if (unlikely(state->copies_all || !state->frames_are_given || !frame_is_free(m) ||
		     !spare_take(state, &state->frames)))
		return NULL;
	frame->owner = NULL;
	m->data_off = (uint16_t)(v->payload - (const uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)v->payload_len;
	m->pkt_len = v->payload_len;
	/* They described the frame. */
	m->ol_flags = 0;
	m->packet_type = 0;
	m->tx_offload = 0;
	shared->stats->mbufs_handed++;
	return m;
}

/* Of a mempool that the port needs: what may be taken from it. NULL: the port has no need of it. */
static struct mbuf_spare *
spare_of(struct mbuf_state *state, const struct rte_mempool *pool)
{
	if (pool == state->frames.pool)
		return &state->frames;
	return pool == state->copies.pool ? &state->copies : NULL;
}

static struct rte_mbuf *
payload_copied(
	struct qp_shared *shared, struct rte_mempool *pool, const struct pkt_view *v)
{
	struct mbuf_spare *spare = spare_of(&shared->mbuf, pool);
	struct rte_mbuf *m;

	if (spare != NULL && !spare_take(&shared->mbuf, spare))
		return NULL;
	m = shared->mbuf.ops->copy(pool, v->payload, v->payload_len);
	shared->stats->mbufs_copied += m != NULL;
	return m;
}

static void
chain_add(struct qp *qp, struct rte_mbuf *m)
{
	struct chain *chain = chain_of(qp);
	struct rte_mbuf *first;

	if (qp->resp.chained) {
		first = mbuf_of(qp->wqe->wr_id);
		first->nb_segs++;
		first->pkt_len += m->data_len;
		chain->last->next = m;
	} else {
		chain->posted = qp->wqe->wr_id;
		qp->wqe->wr_id = (uintptr_t)m;
		qp->resp.chained = true;
	}
	chain->last = m;
}

int
mbuf_receive(struct qp *qp, const struct pkt_view *v)
{
	struct qp_shared *shared = qp->shared;
	const struct srq_mbufs *to = &qp->srq->mbufs;
	struct rte_mbuf *m;

	if (qp->resp.received + v->payload_len > to->max_message)
		return -EMSGSIZE;
	m = frame_take(shared, v);
	if (unlikely(m == NULL))
		m = payload_copied(shared, to->pool, v);
	if (unlikely(m == NULL)) {
		shared->stats->mbufs_missing++;
		return -ENOBUFS;
	}
	/* Point of no return. */
	chain_add(qp, m);
	return 0;
}

void RARE
mbuf_receive_drop(struct qp *qp)
{
	if (!qp->resp.chained)
		return;
	qp->shared->mbuf.ops->release(mbuf_of(qp->wqe->wr_id));
	qp->wqe->wr_id = chain_of(qp)->posted;
	qp->resp.chained = false;
}

void RARE
mbuf_cqe_drop(const struct qp *qp, const struct cqe *cqe)
{
	if ((cqe->wc_flags & CQE_WC_MBUF) != 0)
		qp->shared->mbuf.ops->release(mbuf_of(cqe->wr_id));
}

void
mbuf_cqes_drop(const struct qp *qp)
{
	const struct cq *cq = qp->recv_cq;

	if (likely(!srq_has_mbufs(qp->srq)))
		return;
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		const struct cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->qpn == qp->qpn && (cqe->flags & CQE_CLEANED) == 0)
			mbuf_cqe_drop(qp, cqe);
	}
}
