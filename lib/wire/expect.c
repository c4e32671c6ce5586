/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "wire/expect.h"
#include "wire/icrc.h"

static inline size_t
head_len(const struct expect *x)
{
	return (size_t)(x->view.ext - x->head);
}

/* The view of the same packet whose bytes are elsewhere. */
static inline void
view_move(struct pkt_view *view, const uint8_t *from, const uint8_t *to)
{
	view->ip = to + (view->ip - from);
	view->bth = (const struct bth *)(to + ((const uint8_t *)view->bth - from));
	view->ext = to + (view->ext - from);
	view->payload = to + (view->payload - from);
}

void
expect_like(struct expect *x, const struct pkt *pkt, const struct pkt_view *view,
	uint32_t psn)
{
	assert(view->op->ext_len == 0);
	memcpy(x->head, pkt->data, (size_t)(view->ext - pkt->data));
	x->len = pkt->len;
	x->flags = pkt->flags;
	x->view = *view;
	view_move(&x->view, pkt->data, x->head);
	expect_psn(x, psn);
}

void
expect_psn(struct expect *x, uint32_t psn)
{
	struct bth *bth = (struct bth *)(x->head + head_len(x)) - 1;

	be24_put(bth->psn, psn);
	x->view.psn = psn;
	x->crc = icrc_head(&x->view);
}

const uint8_t *
expect_match(const struct expect *x, const struct pkt *pkt)
{
	const uint8_t *payload = pkt->data + head_len(x);

	if (pkt->len != x->len || pkt->flags != x->flags ||
		memcmp(pkt->data, x->head, head_len(x)) != 0 ||
		!icrc_check_from(x->crc, payload, x->view.payload_len + x->view.pad))
		return NULL;
	return payload;
}
