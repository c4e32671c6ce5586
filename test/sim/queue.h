/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What completion queues and receive queues must look like. A receive model stands for
 * an SRQ or for the RQ of one QP: what was posted and has not come back, in order.
 */
#ifndef ROCADE_SIM_QUEUE_H
#define ROCADE_SIM_QUEUE_H

#include <infiniband/verbs.h>

#include "sgl.h"

#define RECV_RING 512      /* receives that a model remembers */
#define RECV_RING_SRQ 8192 /* a QP may hold one while thousands pass it by */

struct host;
struct end;

/* wr_id: kind, whose, which. */
#define ID_SEND UINT64_C(0x5E)
#define ID_RECV UINT64_C(0x7E)
#define ID_SRQ UINT64_C(0x9E)
#define ID_ROGUE UINT64_C(0xBE)
#define ID_MAKE(kind, owner, index) ((kind) << 56 | (uint64_t)(owner) << 32 | (index))
#define ID_KIND(id) ((id) >> 56)
#define ID_OWNER(id) ((unsigned)((id) >> 32) & 0xFFFFFF)
#define ID_INDEX(id) ((uint32_t)(id))

struct cq_model {
	struct host *host;
	unsigned index;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	uint32_t size; /* what may be in it at once */
	bool ex;       /* made and polled by the extended calls */
	bool broken;   /* it overflowed */
	bool polling;  /* completions have been polled that are not looked at yet */
	/* Arming: */
	bool armed, armed_solicited;
	bool due;       /* a completion that must wake has been seen */
	bool possible;  /* one that may has been lost with its QP */
	uint64_t stamp; /* of the last completion */
	uint64_t polled, events;
};

struct recv {
	struct sgl sgl;
	uint32_t index;
	uint32_t cap; /* bytes */
	bool live;
	bool bad;  /* its lkey */
	bool lost; /* its region was deregistered: it may fail */
};

struct recv_model {
	struct host *host;
	unsigned number;     /* an SRQ's place, or the end's */
	struct ibv_srq *srq; /* NULL: an RQ */
	struct ibv_qp *qp;
	/* An XRC SRQ's: */
	struct ibv_xrcd *xrcd;
	struct cq_model *cq;
	uint32_t srqn;
	unsigned pd;
	uint32_t max_wr, max_sge;
	uint32_t bound; /* receives alive at once, at the most: the CQs are made for it */
	uint32_t cap;   /* bytes of a receive */
	uint32_t posted; /* index of the next */
	uint32_t oldest; /* all before it have come back */
	uint32_t live;
	uint32_t limit;     /* armed */
	uint32_t limit_due; /* events that must have come by now */
	uint32_t limit_events;
	uint32_t users;
	bool spoil;    /* while such a one is posted */
	bool has_bad;  /* there was a receive without rights, from then on */
	uint32_t ring; /* places in it */
	struct recv *recv;
};

/* Polls until nothing is left, or n. Checks every completion. */
void
cq_poll(struct cq_model *m, unsigned n);
void
cq_open(struct cq_model *m, struct host *h, unsigned index, bool channel);
void
cq_close(struct cq_model *m);
/* Arms it and polls what is there. */
void
cq_arm_op(struct cq_model *m);
/* After a turn: has it woken whom it must, and nobody else? */
void
cq_check_events(struct cq_model *m);
/* A completion was seen: does it have to wake? */
void
cq_saw(struct cq_model *m, bool solicited_or_error);
/* The completions of this QP that were not polled go with it. */
void
cq_purged(struct cq_model *m, struct end *e);

/* Room for what is posted. */
void
recv_open(struct recv_model *m, uint32_t ring);
void
recv_close(struct recv_model *m);
void
recv_open_srq(struct recv_model *m, struct host *h, unsigned number);
void
recv_close_srq(struct recv_model *m);
/* False: there was no place. */
bool
recv_post(struct recv_model *m, unsigned count);
/* The receive of a completion; checks that it is alive. */
struct recv *
recv_find(struct recv_model *m, uint64_t wr_id);
void
recv_done(struct recv_model *m, struct recv *r, uint32_t written);
/* What is left, when the queue is gone. */
void
recv_drop_all(struct recv_model *m);
/* A receive that nobody may write to is posted, or one that is posted becomes one. */
bool
recv_spoil(struct recv_model *m);
void
cq_resize_op(struct cq_model *m);
void
srq_arm_op(struct recv_model *m);
void
srq_resize_op(struct recv_model *m);
/* After a turn: the limit event came when it had to. */
void
srq_check(struct recv_model *m);

#endif
