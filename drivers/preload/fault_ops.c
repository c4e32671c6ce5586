/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that <infiniband/verbs.h> makes through the context or the QP: their pointers are replaced in the contexts
 * and QPs of Rocade's devices. */
#include <errno.h>
#include <pthread.h>

#include "preload/fault_link.h"
#include "preload/fault_process.h"
#include "preload/fault_queues.h"
#include "preload/fault_requests.h"

/* The functions that they had before: the same for all contexts and QPs, so that they are stored once. Other threads
 * read them without the lock. */
static struct {
	struct ibv_context_ops ops;
	struct ibv_cq_ex *(*create_cq_ex)(
		struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
	struct ibv_qp *(*create_qp_ex)(
		struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
	struct ibv_srq *(*create_srq_ex)(
		struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
	int (*wr_complete)(struct ibv_qp_ex *ex);
} next;

static pthread_mutex_t next_lock = PTHREAD_MUTEX_INITIALIZER;

static int
fault_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int err = fault_refusal(FAULT_poll_cq);

	return err != 0 ? -err : next.ops.poll_cq(cq, count, wc);
}

static int
fault_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int err = fault_refusal(FAULT_req_notify_cq);

	return err != 0 ? err : next.ops.req_notify_cq(cq, solicited_only);
}

static struct ibv_mw *
fault_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return fault_refusal(FAULT_alloc_mw) != 0 ? NULL : next.ops.alloc_mw(pd, type);
}

static int
fault_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	int err = next.ops.bind_mw(qp, mw, bind);

	if (err == 0)
		fault_bind_count(qp);
	return err;
}

/* A list of work requests: if a rule is of this call, or of requests, they are posted one by one, in copies, because the
 * list is the program's. Each counts just before it is posted: those behind one that the device refuses do not count. */
#define POST(name, object, request, counted, post_one)                                   \
	static int fault_##name(                                                         \
		struct object *to, struct request *wr, struct request **bad)             \
	{                                                                                \
		int err = 0;                                                             \
                                                                                         \
		if (!fault_is_possible(FAULT_##name) && !fault_is_possible(counted))     \
			return next.ops.name(to, wr, bad);                               \
		for (; wr != NULL; wr = wr->next) {                                      \
			struct request one = *wr;                                        \
                                                                                         \
			one.next = NULL;                                                 \
			err = fault_refusal(FAULT_##name);                               \
			if (err == 0)                                                    \
				err = post_one(to, &one, next.ops.name);                 \
			if (err != 0)                                                    \
				break;                                                   \
		}                                                                        \
		if (err != 0 && bad != NULL)                                             \
			*bad = wr;                                                       \
		return err;                                                              \
	}

POST(post_send, ibv_qp, ibv_send_wr, FAULT_REQUESTS, fault_request_post)
POST(post_recv, ibv_qp, ibv_recv_wr, FAULT_RECEIVES, fault_receive_post)
POST(post_srq_recv, ibv_srq, ibv_recv_wr, FAULT_RECEIVES, fault_srq_receive_post)

/* Nothing of a CQ is counted. */
static void
cq_made(struct ibv_cq_ex *cq)
{
	(void)cq;
}

#define CREATE_EX(call, name, type, attributes, count)                                   \
	static struct type *fault_##name(                                                \
		struct ibv_context *context, struct attributes *attr)                    \
	{                                                                                \
		struct type *made;                                                       \
                                                                                         \
		if (fault_refusal(FAULT_##call) != 0)                                    \
			return NULL;                                                     \
		fault_inside++;                                                          \
		made = next.name(context, attr);                                         \
		fault_inside--;                                                          \
		if (made != NULL)                                                        \
			count(made);                                                     \
		return made;                                                             \
	}

CREATE_EX(create_cq, create_cq_ex, ibv_cq_ex, ibv_cq_init_attr_ex, cq_made)
CREATE_EX(create_qp, create_qp_ex, ibv_qp, ibv_qp_init_attr_ex, fault_qp_made)
CREATE_EX(create_srq, create_srq_ex, ibv_srq, ibv_srq_init_attr_ex, fault_srq_made)

/* Nothing of the batch is posted: ibv_wr_abort(3) is how a program gives one up. */
static int
fault_wr_complete(struct ibv_qp_ex *ex)
{
	int err = fault_refusal(FAULT_wr_complete);
	struct fault_hit end;

	if (err != 0) {
		ex->wr_abort(ex);
		errno = err;
		return err;
	}
	end = fault_batch_apply(ex);
	err = next.wr_complete(ex);
	fault_batch_end_connection(&ex->qp_base, &end);
	return err;
}

void
fault_context_patch(struct ibv_context *context, const void *opened_by)
{
	struct verbs_context *extended = verbs_get_ctx(context);

	if (extended == NULL || fault_context_is_patched(context) ||
		!fault_same_library((const void *)context->ops.poll_cq, opened_by))
		return;
	pthread_mutex_lock(&next_lock);
	if (next.ops.poll_cq == NULL) {
		next.ops = context->ops;
		next.create_cq_ex = extended->create_cq_ex;
		next.create_qp_ex = extended->create_qp_ex;
		next.create_srq_ex = extended->create_srq_ex;
	}
	pthread_mutex_unlock(&next_lock);
	extended->create_cq_ex = fault_create_cq_ex;
	extended->create_qp_ex = fault_create_qp_ex;
	extended->create_srq_ex = fault_create_srq_ex;
	context->ops.poll_cq = fault_poll_cq;
	context->ops.req_notify_cq = fault_req_notify_cq;
	context->ops.alloc_mw = fault_alloc_mw;
	context->ops.bind_mw = fault_bind_mw;
	context->ops.post_send = fault_post_send;
	context->ops.post_recv = fault_post_recv;
	context->ops.post_srq_recv = fault_post_srq_recv;
	fault_wire_begin(context);
	fault_link_begin(context);
}

bool
fault_context_is_patched(const struct ibv_context *context)
{
	return context->ops.poll_cq == fault_poll_cq;
}

void
fault_wr_patch(struct ibv_qp_ex *ex)
{
	pthread_mutex_lock(&next_lock);
	if (ex->wr_complete != fault_wr_complete) {
		if (next.wr_complete == NULL)
			next.wr_complete = ex->wr_complete;
		ex->wr_complete = fault_wr_complete;
	}
	pthread_mutex_unlock(&next_lock);
}
