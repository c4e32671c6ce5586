/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rxq.h"

#define STRIDE_ALIGN UINT64_C(64)

void *
buffer_map(size_t len)
{
	void *mem = mmap(
		NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	madvise(mem, len, MADV_HUGEPAGE); /* a hint: failure does not matter */
	return mem;
}

void
buffer_unmap(void *mem, size_t len)
{
	if (mem != NULL)
		munmap(mem, len);
}

int
rxq_init(struct rxq *rxq, struct ibv_srq *srq, struct ibv_qp *qp)
{
	*rxq = (struct rxq){.srq = srq, .qp = qp};
	return 0;
}

int
rxq_share(struct rxq *rxq, const struct rxq *from)
{
	*rxq = *from;
	rxq->borrowed = true;
	rxq->n_spare = 0;
	rxq->spare = malloc(from->n_bufs * sizeof(*rxq->spare));
	return rxq->spare != NULL ? 0 : ENOMEM;
}

void
rxq_fini(struct rxq *rxq)
{
	for (unsigned i = 0; i < rxq->n_slabs && !rxq->borrowed; i++) {
		ibv_dereg_mr(rxq->slabs[i].mr);
		buffer_unmap(rxq->slabs[i].mem, rxq->slabs[i].len);
	}
	if (!rxq->borrowed)
		free(rxq->bufs);
	free(rxq->spare);
	*rxq = (struct rxq){0};
}

static int
rx_slab_init(struct rx_slab *slab, struct ibv_pd *pd, size_t len)
{
	slab->len = len;
	slab->mem = buffer_map(len);
	if (slab->mem == NULL)
		return ENOMEM;
	slab->mr = ibv_reg_mr(pd, slab->mem, len, IBV_ACCESS_LOCAL_WRITE);
	if (slab->mr == NULL) {
		int rc = errno;

		buffer_unmap(slab->mem, len);
		return rc;
	}
	return 0;
}

int
rxq_grow(struct rxq *rxq, struct ibv_pd *pd, uint32_t n, uint64_t len)
{
	uint64_t stride = (len + STRIDE_ALIGN - 1) & ~(STRIDE_ALIGN - 1);
	uint32_t total = rxq->n_bufs + n;

	if (stride == 0)
		stride = STRIDE_ALIGN;
	if (n == 0)
		return 0;
	if (rxq->n_slabs == RXQ_SLABS_MAX)
		return ENOSPC;
	struct rx_buf *bufs = realloc(rxq->bufs, total * sizeof(*bufs));
	if (bufs == NULL)
		return ENOMEM;
	rxq->bufs = bufs;
	uint32_t *spare = realloc(rxq->spare, total * sizeof(*spare));
	if (spare == NULL)
		return ENOMEM;
	rxq->spare = spare;
	struct rx_slab *slab = &rxq->slabs[rxq->n_slabs];
	int rc = rx_slab_init(slab, pd, n * stride);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		bufs[rxq->n_bufs + i] =
			(struct rx_buf){.data = (uint8_t *)slab->mem + i * stride,
				.lkey = slab->mr->lkey};
		/* The lowest index ends up on top of the stack, so that memory is first
		 * used in order. */
		spare[rxq->n_spare++] = total - 1 - i;
	}
	rxq->n_slabs++;
	rxq->n_bufs = total;
	rxq->len = len;
	return 0;
}

static int
rxq_post_list(struct rxq *rxq, uint32_t n)
{
	struct ibv_recv_wr wr[RXQ_BATCH], *bad = NULL;
	struct ibv_sge sge[RXQ_BATCH];
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t index = rxq->spare[rxq->n_spare - 1 - i];
		const struct rx_buf *buf = &rxq->bufs[index];

		sge[i] = (struct ibv_sge){.addr = (uintptr_t)buf->data,
			.length = (uint32_t)rxq->len,
			.lkey = buf->lkey};
		/* A receive SGE of length 0 means 2^31 bytes, so receives of 0-byte
		 * messages have no SGE. */
		wr[i] = (struct ibv_recv_wr){.wr_id = index,
			.sg_list = &sge[i],
			.num_sge = rxq->len != 0,
			.next = i + 1 < n ? &wr[i + 1] : NULL};
	}
	if (rxq->srq != NULL)
		rc = ibv_post_srq_recv(rxq->srq, wr, &bad);
	else
		rc = ibv_post_recv(rxq->qp, wr, &bad);
	rxq->n_spare -= rc == 0 ? n : (uint32_t)(bad - wr);
	return rc;
}

int
rxq_post(struct rxq *rxq)
{
	while (rxq->n_spare != 0) {
		uint32_t room = rxq->capacity - rxq_posted(rxq);
		uint32_t n = rxq->n_spare < room ? rxq->n_spare : room;

		if ((int32_t)room <= 0)
			return 0;
		int rc = rxq_post_list(rxq, n < RXQ_BATCH ? n : RXQ_BATCH);

		/* An engine that takes a receive from an SRQ and has lost its CPU keeps the slot, and
		 * the SRQ can be full until that engine goes on. */
		rxq->refused = rc == ENOMEM && rxq->srq != NULL;
		if (rxq->refused)
			return 0;
		if (rc != 0)
			return rc;
	}
	return 0;
}
