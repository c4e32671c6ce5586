/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation of handles of QPs. */
#include "verbs/qp_handle.h"

void
verbs_qp_publish(struct verbs_qp *vqp)
{
	vqp->ibv.qp_num = vqp->qp->qpn;
	vqp->ibv.handle = vqp->qp->qpn;
	vqp->ibv.state = qp_state(vqp->qp);
	pthread_mutex_init(&vqp->ibv.mutex, NULL);
	pthread_cond_init(&vqp->ibv.cond, NULL);
}

/* Sizes of the struct qp in front, and of the whole allocation. */
static size_t
qp_in_front_bytes(bool qp_in_front)
{
	return qp_in_front ? sizeof(struct qp) : 0;
}

static size_t
qp_bytes(bool extended, bool qp_in_front)
{
	return qp_in_front_bytes(qp_in_front) +
	       (extended ? sizeof(struct verbs_qp) : VERBS_QP_PLAIN);
}

struct verbs_qp *
verbs_qp_alloc(struct ibv_context *context, bool extended, bool qp_in_front)
{
	uint8_t *mem = alloc_get(
		&to_ctx(context)->dev->mem, "verbs_qp", qp_bytes(extended, qp_in_front));
	struct verbs_qp *vqp = (struct verbs_qp *)(mem + qp_in_front_bytes(qp_in_front));

	if (mem == NULL)
		return NULL;
	vqp->ibv.context = context;
	vqp->extended = extended;
	vqp->qp_in_front = qp_in_front;
	return vqp;
}

void
verbs_qp_free(struct verbs_qp *vqp)
{
	alloc_put(&to_ctx(vqp->ibv.context)->dev->mem,
		(uint8_t *)vqp - qp_in_front_bytes(vqp->qp_in_front),
		qp_bytes(vqp->extended, vqp->qp_in_front));
}
