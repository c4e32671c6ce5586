/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include <rte_mbuf_core.h>

#include "qp/mbuf_send.h"
#include "qp/qp_state.h"

/* In the room of the request's SGE. */
struct send_mbuf {
	struct rte_mbuf *m;
	/* Where the payload of the first segment begins: in m this is where a frame began that was
	 * sent in place. */
	uint32_t data_off;
	uint32_t reserved;
};
static_assert(
	sizeof(struct send_mbuf) == sizeof(struct sge), "a slot has room for one SGE");

static inline struct send_mbuf *
send_mbuf_of(const struct send_wqe *wqe)
{
	return (struct send_mbuf *)(uintptr_t)wqe->sge;
}

void
mbuf_send_write(struct send_wqe *wqe, struct rte_mbuf *m)
{
	*send_mbuf_of(wqe) = (struct send_mbuf){.m = m, .data_off = m->data_off};
}

/* Returns whether a frame of len bytes can be built in the mbuf, behind so many bytes of headers. */
static bool
place_fits(const struct send_mbuf *send, uint32_t headers, uint32_t len)
{
	const struct rte_mbuf *m = send->m;

	/* Relaxed: of one holder only that one changes it. */
	return m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && send->data_off >= headers &&
	       send->data_off - headers + len <= m->buf_len &&
	       __atomic_load_n(&m->refcnt, __ATOMIC_RELAXED) == 1;
}

void
mbuf_send_place(struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt, uint32_t len)
{
	struct mbuf_state *state = &qp->shared->mbuf;
	const struct send_mbuf *send = send_mbuf_of(wqe);
	uint32_t headers = len - ICRC_LEN - ((wqe->len + 3) & ~3u);
	struct rte_mbuf *m = send->m;

	/* A packet that is built once more before it is sent. */
	if (unlikely(pkt->owner == m))
		return;
	/* UC drops packets that it has built if a completion finds no room. */
	if (unlikely(!state->sends || state->diverted || !qp_reliable(qp) ||
		     wqe->len > qp_pmtu(qp) || !place_fits(send, headers, len))) {
		qp->shared->stats->mbufs_tx_copied++;
		return;
	}
	state->displaced[state->displaced_count++] = *pkt;
	__atomic_store_n(&m->refcnt, 2, __ATOMIC_RELAXED);
	m->data_off = (uint16_t)(send->data_off - headers);
	*pkt = (struct pkt){.data = (uint8_t *)m->buf_addr + m->data_off,
		.room = (uint16_t)len,
		.owner = m};
	qp->shared->stats->mbufs_tx_placed++;
}

void
mbuf_send_copy(const struct send_wqe *wqe, const struct pkt *pkt, uint32_t offset,
	uint8_t *dst, uint32_t len, struct icrc_sum *sum)
{
	const struct send_mbuf *send = send_mbuf_of(wqe);
	const struct rte_mbuf *m = send->m;
	const uint8_t *data = (const uint8_t *)m->buf_addr + send->data_off;
	/* Of a single segment m->data_len may be that of a frame. */
	uint32_t left = m->nb_segs == 1 ? wqe->len : m->data_len;

	if (pkt->owner == m)
		return;
	while (len != 0) {
		uint32_t part;

		if (offset >= left) {
			offset -= left;
			m = m->next;
			data = (const uint8_t *)m->buf_addr + m->data_off;
			left = m->data_len;
			continue;
		}
		part = RTE_MIN(len, left - offset);
		payload_copy_sum(sum, dst, data + offset, part);
		dst += part;
		offset += part;
		len -= part;
	}
}

void
mbuf_send_done(struct qp *qp, uint32_t idx)
{
	struct send_wqe *wqe = sq_slot(&qp->sq, idx);

	if ((wqe->flags & WQE_MBUF) == 0)
		return;
	/* Once: a completion that finds its CQ full is flushed, too. */
	wqe->flags &= (uint8_t)~WQE_MBUF;
	qp->shared->mbuf.ops->release(send_mbuf_of(wqe)->m);
}

void
mbuf_send_drop(struct qp *qp)
{
	uint32_t end = sq_posted(&qp->sq);

	for (uint32_t idx = qp->req.una_idx; idx != end; idx++)
		mbuf_send_done(qp, idx);
}
