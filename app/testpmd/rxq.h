/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive buffers of an SRQ or of a QP, and their posting in batches. */
#ifndef TESTPMD_RXQ_H
#define TESTPMD_RXQ_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#define RXQ_BATCH 64
#define RXQ_SLABS_MAX 32

struct rx_buf {
	uint8_t *data;
	uint32_t lkey;
};

struct rx_slab {
	void *mem;
	size_t len;
	struct ibv_mr *mr;
};

struct rxq {
	struct ibv_srq *srq; /* either srq or qp is set */
	struct ibv_qp *qp;
	struct rx_buf *bufs; /* indexed by wr_id */
	uint32_t *spare;     /* stack of the buffers that are not posted */
	uint32_t n_bufs, n_spare;
	uint32_t capacity;    /* of the queue, in receives */
	uint64_t len;         /* of a buffer */
	bool refill_on_limit; /* refill only on the limit event */
	bool refused;  /* an SRQ had no room for spare buffers: they are posted later */
	bool borrowed; /* bufs are those of another struct rxq */
	unsigned sharers; /* other cores that post to the SRQ */
	struct rx_slab slabs[RXQ_SLABS_MAX];
	unsigned n_slabs;
};

/* Always returns 0. */
int rxq_init(struct rxq *rxq, struct ibv_srq *srq, struct ibv_qp *qp);
void rxq_fini(struct rxq *rxq);
/* Several cores post to one SRQ. Each has its own struct rxq, whose spare buffers are those that it took
 * itself; from has the buffers. Returns 0 or an errno value. */
int rxq_share(struct rxq *rxq, const struct rxq *from);
/* Adds n buffers of len bytes. len may be 0, and must be the same in every call. Returns
 * 0 or an errno value. */
int rxq_grow(struct rxq *rxq, struct ibv_pd *pd, uint32_t n, uint64_t len);

static inline uint32_t
rxq_posted(const struct rxq *rxq)
{
	return rxq->n_bufs - rxq->n_spare;
}

/* Takes back a buffer whose receive has completed. */
static inline void
rxq_return(struct rxq *rxq, uint32_t index)
{
	rxq->spare[rxq->n_spare++] = index;
}

/* Posts spare buffers in lists, up to the capacity of the queue. Returns 0 or an errno
 * value. */
int rxq_post(struct rxq *rxq);

/* For the data path: posts only when a full list is spare, or a quarter of a small queue, less where
 * other cores have spare buffers, too: what is spare at all of them is not posted. Posts nothing if the
 * queue is refilled on its limit event. */
static inline int
rxq_refill(struct rxq *rxq)
{
	uint32_t part = rxq->capacity / (4 * (rxq->sharers + 1));
	uint32_t enough = part < RXQ_BATCH ? part : RXQ_BATCH;

	return rxq->n_spare < enough || rxq->refill_on_limit ? 0 : rxq_post(rxq);
}

void *buffer_map(size_t len);
void buffer_unmap(void *mem, size_t len);

#endif
