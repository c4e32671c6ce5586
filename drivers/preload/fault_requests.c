/* SPDX-License-Identifier: BSD-3-Clause */
/* A send request that a rule concerns is posted as one that fails (qp/request_fault.h). A receive is posted so that it
 * fails the check that has this status: without memory, or with keys that no region has. So the peer sees what belongs
 * to it. */
#include <string.h>

#include <rocade/flush.h>

#include "preload/fault_connections.h"
#include "preload/fault_link.h"
#include "preload/fault_process.h"
#include "preload/fault_queues.h"
#include "preload/fault_requests.h"
#include "preload/fault_write.h"
#include "verbs/fault_hooks.h"

#define SGES_MAX 32 /* more than a device has */

/* Returns the FAULT_ON_* of a send request. Inline data has no lkey. */
static unsigned
kind_of(unsigned opcode, uint64_t len, bool is_inline)
{
	static const unsigned kinds[] = {
		[IBV_WR_SEND] = FAULT_ON_SEND,
		[IBV_WR_SEND_WITH_IMM] = FAULT_ON_SEND,
		[IBV_WR_SEND_WITH_INV] = FAULT_ON_SEND_INV,
		[IBV_WR_RDMA_WRITE] = FAULT_ON_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = FAULT_ON_WRITE_IMM,
		[IBV_WR_RDMA_READ] = FAULT_ON_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = FAULT_ON_ATOMIC,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = FAULT_ON_ATOMIC,
		[IBV_WR_ATOMIC_WRITE] = FAULT_ON_ATOMIC_WRITE,
		[ROCADE_WR_FLUSH] = FAULT_ON_FLUSH,
		[IBV_WR_LOCAL_INV] = FAULT_ON_LOCAL_INV,
		[IBV_WR_BIND_MW] = FAULT_ON_BIND,
	};
	unsigned kind = opcode < sizeof(kinds) / sizeof(kinds[0]) ? kinds[opcode] : 0;

	return kind | (len != 0 ? FAULT_ON_BYTES : 0) |
	       (len != 0 && !is_inline ? FAULT_ON_MEMORY : 0);
}

static uint64_t
bytes_of(const struct ibv_sge *list, int count)
{
	uint64_t sum = 0;

	for (int i = 0; i < count && count <= SGES_MAX; i++)
		sum += list[i].length;
	return sum;
}

static struct fault_hit
hit_next(struct counted_queue *q, unsigned counted, unsigned kind)
{
	uint64_t *count = counted == FAULT_REQUESTS ? &q->requests : &q->receives;
	uint64_t number = 1 + __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);

	return fault_request_hit(counted, q->name, number, kind | q->type);
}

/* The device has refused the request: the next one has its number. */
static void
hit_undo(struct counted_queue *q, unsigned counted)
{
	fault_request_undo(counted);
	__atomic_fetch_sub(counted == FAULT_REQUESTS ? &q->requests : &q->receives, 1,
		__ATOMIC_RELAXED);
}

static bool
ends_connection(const struct fault_hit *hit)
{
	return hit->rule->action == FAULT_EVENT &&
	       hit->rule->err == FAULT_CM_DISCONNECTED;
}

/* Causes an event, or a change of the link, with all that belongs to it, unless it cannot come now. Returns whether it
 * does. Its line is in the journal before it comes, because a thread of the program may end the process then. qp or srq:
 * where the request is posted. */
static bool
hit_cause(const struct fault_hit *hit, struct ibv_qp *qp, struct ibv_srq *srq)
{
	enum ibv_event_type type = (enum ibv_event_type)hit->rule->err;

	if (hit->rule->action == FAULT_LINK)
		return fault_link_change(hit);
	if (ends_connection(hit)) {
		if (!fault_connection_is_open(qp))
			return false;
		fault_hit_apply(hit);
		fault_connection_break(qp);
		return true;
	}
	if (!verbs_hooks()->event_possible(type, qp, srq))
		return false;
	fault_hit_apply(hit);
	verbs_hooks()->event_cause(type, qp, srq);
	return true;
}

static struct fault_completion
completion_of(const struct fault_hit *hit)
{
	return (struct fault_completion){.status = (enum ibv_wc_status)hit->rule->err,
		.vendor_err = hit->rule->vendor};
}

/* Returns the queue if a rule of the process counts its requests, or NULL. */
static struct counted_queue *
queue_counted(const void *handle, unsigned counted)
{
	return fault_is_possible(counted) && verbs_hooks() != NULL
		       ? fault_queue_of(handle)
		       : NULL;
}

int
fault_request_post(struct ibv_qp *qp, struct ibv_send_wr *wr, fault_send_fn *next)
{
	struct counted_queue *q = queue_counted(qp, FAULT_REQUESTS);
	struct fault_completion fault;
	struct ibv_send_wr *bad;
	struct fault_hit hit;
	bool fails, caused = false;
	int err;

	if (q == NULL)
		return next(qp, wr, &bad);
	hit = hit_next(q, FAULT_REQUESTS,
		kind_of((unsigned)wr->opcode, bytes_of(wr->sg_list, wr->num_sge),
			(wr->send_flags & IBV_SEND_INLINE) != 0));
	fails = hit.rule != NULL && hit.rule->action == FAULT_FAIL;
	if (fails) {
		fault = completion_of(&hit);
		err = verbs_hooks()->post_failing(qp, wr, &fault);
	} else {
		if (hit.rule != NULL && verbs_hooks()->post_possible(qp, wr))
			caused = hit_cause(&hit, qp, NULL);
		err = next(qp, wr, &bad);
	}
	/* Another thread may have taken the last slot since. Of an event the journal has this number. */
	if (err != 0 && !caused)
		hit_undo(q, FAULT_REQUESTS);
	else if (fails)
		fault_hit_apply(&hit);
	return err;
}

/* A connection ends once: of several such hits only the first one is applied. */
struct fault_hit
fault_batch_apply(struct ibv_qp_ex *ex)
{
	struct fault_hit end = {.rule = NULL};
	struct ibv_qp *qp = &ex->qp_base;
	struct counted_queue *q = queue_counted(qp, FAULT_REQUESTS);
	unsigned count = q != NULL ? verbs_hooks()->batch_end(ex) : 0;

	for (unsigned i = 0; i < count; i++) {
		struct fault_request request = verbs_hooks()->batch_request(ex, i);
		struct fault_hit hit = hit_next(q, FAULT_REQUESTS,
			kind_of(request.opcode, request.len, request.is_inline));
		struct fault_completion fault;

		if (hit.rule == NULL)
			continue;
		if (ends_connection(&hit)) {
			if (end.rule == NULL)
				end = hit;
			continue;
		}
		if (hit.rule->action != FAULT_FAIL) {
			(void)hit_cause(&hit, qp, NULL);
			continue;
		}
		fault = completion_of(&hit);
		verbs_hooks()->batch_fail(ex, i, &fault);
		fault_hit_apply(&hit);
	}
	return end;
}

void
fault_batch_end_connection(struct ibv_qp *qp, const struct fault_hit *hit)
{
	if (hit->rule != NULL)
		(void)hit_cause(hit, qp, NULL);
}

void
fault_bind_count(struct ibv_qp *qp)
{
	struct counted_queue *q = queue_counted(qp, FAULT_REQUESTS);

	if (q != NULL)
		(void)hit_next(q, FAULT_REQUESTS, 0); /* no kind: no rule concerns it */
}

/* A receive as it is posted. */
struct receive {
	struct ibv_recv_wr wr;
	struct ibv_sge sges[SGES_MAX];
};

static void
receive_spoil(struct receive *r, const struct fault_hit *hit)
{
	if (hit->rule->err == IBV_WC_LOC_LEN_ERR) {
		r->wr.num_sge = 0;
		return;
	}
	memcpy(r->sges, r->wr.sg_list, (size_t)r->wr.num_sge * sizeof(r->sges[0]));
	for (int i = 0; i < r->wr.num_sge; i++)
		r->sges[i].lkey = 0;
	r->wr.sg_list = r->sges;
}

/* Counts the receive, and makes of it what is to be posted. */
static struct fault_hit
receive_prepare(struct receive *r, struct counted_queue *q)
{
	bool has_room =
		r->wr.num_sge <= SGES_MAX && bytes_of(r->wr.sg_list, r->wr.num_sge) != 0;
	struct fault_hit hit = hit_next(
		q, FAULT_RECEIVES, FAULT_ON_RECEIVE | (has_room ? FAULT_ON_BYTES : 0));

	if (hit.rule != NULL && hit.rule->action == FAULT_FAIL)
		receive_spoil(r, &hit);
	return hit;
}

/* The device has accepted it. An event comes behind the post: only the device knows whether it accepts a receive. */
static void
receive_posted(const struct fault_hit *hit, struct ibv_qp *qp, struct ibv_srq *srq)
{
	if (hit->rule->action == FAULT_FAIL)
		fault_hit_apply(hit);
	else
		(void)hit_cause(hit, qp, srq);
}

/* qp or srq is NULL, and so is how it is posted there. */
static int
counted_receive_post(struct ibv_qp *qp, fault_recv_fn *to_qp, struct ibv_srq *srq,
	fault_srq_recv_fn *to_srq, const struct ibv_recv_wr *wr)
{
	struct counted_queue *q = queue_counted(
		qp != NULL ? (const void *)qp : (const void *)srq, FAULT_RECEIVES);
	struct fault_hit hit = {.rule = NULL};
	struct ibv_recv_wr *bad;
	struct receive receive;
	int err;

	receive.wr = *wr;
	if (q != NULL)
		hit = receive_prepare(&receive, q);
	err = qp != NULL ? to_qp(qp, &receive.wr, &bad) : to_srq(srq, &receive.wr, &bad);
	if (q != NULL && err != 0)
		hit_undo(q, FAULT_RECEIVES);
	else if (hit.rule != NULL)
		receive_posted(&hit, qp, srq);
	return err;
}

int
fault_receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, fault_recv_fn *next)
{
	return counted_receive_post(qp, next, NULL, NULL, wr);
}

int
fault_srq_receive_post(
	struct ibv_srq *srq, struct ibv_recv_wr *wr, fault_srq_recv_fn *next)
{
	return counted_receive_post(NULL, NULL, srq, next, wr);
}

static enum fault_wire
packet_judge(const void *qp, uint32_t idx, uint32_t packet, uint32_t psn)
{
	static const enum fault_wire effects[] = {[FAULT_DROP] = FAULT_WIRE_DROP,
		[FAULT_DUPLICATE] = FAULT_WIRE_DUPLICATE,
		[FAULT_DELAY] = FAULT_WIRE_DELAY};
	struct counted_queue *q = fault_queue_of(qp);
	struct fault_packet sent;
	struct fault_hit hit;

	if (q == NULL || !fault_packet_count(q, idx, packet, psn, &sent))
		return FAULT_WIRE_PASS;
	hit = fault_packet_hit(q->name, &sent);
	if (hit.rule == NULL)
		return FAULT_WIRE_PASS;
	fault_hit_apply(&hit);
	return effects[hit.rule->err];
}

void
fault_wire_begin(struct ibv_context *context)
{
	if (!fault_is_possible(FAULT_PACKETS) || verbs_hooks() == NULL)
		return;
	fault_packets_begin();
	if (verbs_hooks()->wire_watch(context, packet_judge) != 0)
		fault_report("no memory for rules of packets: they are not applied");
}

uint32_t
fault_posted(struct ibv_qp *qp)
{
	return verbs_hooks() != NULL ? verbs_hooks()->posted(qp) : 0;
}
