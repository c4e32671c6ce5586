/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation of handles of QPs. */
#include "verbs/verbs_qp.h"

void
verbs_qp_publish(struct verbs_qp *vqp)
{
	vqp->ibv.qp_num = vqp->qp->qpn;
	vqp->ibv.handle = vqp->qp->qpn;
	vqp->ibv.state = qp_state(vqp->qp);
	pthread_mutex_init(&vqp->ibv.mutex, NULL);
	pthread_cond_init(&vqp->ibv.cond, NULL);
}

static size_t
qp_bytes(bool extended, bool sends)
{
	return (sends ? offsetof(struct verbs_sender, vqp) : 0) +
	       (extended ? sizeof(struct verbs_qp) : VERBS_QP_PLAIN);
}

struct verbs_qp *
verbs_qp_alloc(struct ibv_context *context, bool extended, bool sends)
{
	void *mem = alloc_get(
		&to_ctx(context)->dev->mem, "verbs_qp", qp_bytes(extended, sends));
	struct verbs_qp *vqp = mem;

	if (mem == NULL)
		return NULL;
	if (sends)
		vqp = &((struct verbs_sender *)mem)->vqp;
	vqp->ibv.context = context;
	vqp->extended = extended;
	vqp->sends = sends;
	return vqp;
}

void
verbs_qp_free(struct verbs_qp *vqp)
{
	alloc_put(&to_ctx(vqp->ibv.context)->dev->mem,
		vqp->sends ? (void *)container_of(vqp, struct verbs_sender, vqp) : vqp,
		qp_bytes(vqp->extended, vqp->sends));
}
