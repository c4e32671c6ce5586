/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of completion queues and receive queues. A receive model stands for an SRQ or
 * for the RQ of one QP: the receives that were posted and have not completed, in
 * order. */
#ifndef ROCADE_SIM_QUEUE_H
#define ROCADE_SIM_QUEUE_H

#include <infiniband/verbs.h>

#include "sgl.h"

#define RECV_RING 512 /* receives that a model keeps */
/* a QP may hold one receive while thousands of others complete */
#define RECV_RING_SRQ 8192

struct host;
struct end;

/* wr_id: kind, number of the owner, index. */
#define ID_SEND UINT64_C(0x5E)
#define ID_RECV UINT64_C(0x7E)
#define ID_SRQ UINT64_C(0x9E)
#define ID_ADVERSARY UINT64_C(0xBE)
#define ID_MAKE(kind, owner, index) ((kind) << 56 | (uint64_t)(owner) << 32 | (index))
#define ID_KIND(id) ((id) >> 56)
#define ID_OWNER(id) ((unsigned)((id) >> 32) & 0xFFFFFF)
#define ID_INDEX(id) ((uint32_t)(id))

struct cq_model {
	struct host *host;
	unsigned index;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	uint32_t size; /* the most completions it can hold */
	bool ex;       /* created and polled by the extended calls */
	bool broken;   /* it overflowed */
	bool polling;  /* polled completions are being checked */
	/* Arming: */
	bool armed, armed_solicited;
	bool due;       /* a completion that must raise an event was seen */
	bool possible;  /* a completion that may have raised one was purged with its QP */
	uint64_t stamp; /* time stamp of the last completion */
	uint64_t polled, events;
};

struct recv {
	struct sgl sgl;
	uint32_t index;
	uint32_t cap; /* bytes */
	bool live;
	bool bad;  /* it has an invalid lkey */
	bool lost; /* its region was deregistered: it may fail */
};

struct recv_model {
	struct host *host;
	unsigned number;     /* index of the SRQ, or number of the end */
	struct ibv_srq *srq; /* NULL: an RQ */
	struct ibv_qp *qp;
	/* Of an XRC SRQ: */
	struct ibv_xrcd *xrcd;
	struct cq_model *cq;
	uint32_t srqn;
	unsigned pd;
	uint32_t max_wr, max_sge;
	/* upper bound of receives posted and not completed; the CQs are sized for it */
	uint32_t bound;
	uint32_t cap;    /* bytes of a receive */
	uint32_t posted; /* index of the next */
	uint32_t oldest; /* all before it have completed */
	uint32_t live;
	uint32_t limit;     /* the armed limit */
	uint32_t limit_due; /* limit events that are due */
	uint32_t limit_events;
	uint32_t users;
	bool post_bad; /* post receives with an invalid lkey */
	bool has_bad;  /* receives without access rights were posted */
	uint32_t ring; /* slots in `recv` */
	struct recv *recv;
};

/* Polls until the CQ is empty, or `n` completions. Checks every completion. */
void cq_poll(struct cq_model *m, unsigned n);
void cq_open(struct cq_model *m, struct host *h, unsigned index, bool channel);
void cq_close(struct cq_model *m);
/* Polls and arms the CQ. */
void cq_arm_op(struct cq_model *m);
/* Checks, after a pass, that an event came if one was due, and only then. */
void cq_check_events(struct cq_model *m);
/* Notes a completion, which may make an event due. */
void cq_note(struct cq_model *m, bool solicited_or_error);
/* Accounts for the completions of this QP that were not polled and go with it. */
void cq_purged(struct cq_model *m, struct end *e);

/* Allocates the slots. */
void recv_open(struct recv_model *m, uint32_t ring);
void recv_close(struct recv_model *m);
void recv_open_srq(struct recv_model *m, struct host *h, unsigned number);
void recv_close_srq(struct recv_model *m);
/* Returns false if no receive was accepted. */
bool recv_post(struct recv_model *m, unsigned count);
/* Returns the receive of a completion. Checks that it is in use. */
struct recv *recv_find(struct recv_model *m, uint64_t wr_id);
void recv_done(struct recv_model *m, struct recv *r, uint32_t written);
/* Frees the receives left when the queue is destroyed. */
void recv_drop_all(struct recv_model *m);
/* Posts a receive without access rights, or deregisters the region of a posted one. */
bool recv_make_bad(struct recv_model *m);
void cq_resize_op(struct cq_model *m);
void srq_arm_op(struct recv_model *m);
void srq_resize_op(struct recv_model *m);
/* Checks, after a pass, that the limit events came when they were due. */
void srq_check(struct recv_model *m);

#endif
