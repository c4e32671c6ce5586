/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include <rte_mbuf_core.h>

#include "qp/mbuf_send.h"
#include "qp/qp_state.h"

/* In the room of the request's SGE. */
struct send_mbuf {
	struct rte_mbuf *m;
};
static_assert(
	sizeof(struct send_mbuf) <= sizeof(struct sge), "a slot has room for one SGE");

static inline struct send_mbuf *
send_mbuf_of(const struct send_wqe *wqe)
{
	return (struct send_mbuf *)(uintptr_t)wqe->sge;
}

void
mbuf_send_write(struct send_wqe *wqe, struct rte_mbuf *m)
{
	send_mbuf_of(wqe)->m = m;
}

void
mbuf_send_copy(const struct send_wqe *wqe, uint32_t offset, uint8_t *dst, uint32_t len,
	struct icrc_sum *sum)
{
	const struct rte_mbuf *m = send_mbuf_of(wqe)->m;

	while (len != 0) {
		const uint8_t *data = (const uint8_t *)m->buf_addr + m->data_off;
		uint32_t part;

		if (offset >= m->data_len) {
			offset -= m->data_len;
			m = m->next;
			continue;
		}
		part = RTE_MIN(len, m->data_len - offset);
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
