/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_attach_mcast(3). The LID has no meaning on Ethernet. Attaching a QP also joins the
 * group on the link (IGMP, MLD), so no other program has to. */
#include "verbs/forward.h"
#include "verbs/objects.h"

EXPORT int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_attach_mcast, qp, gid, lid);
	return errno_set(
		-dev_qp_attach(to_ctx(qp->context)->dev, to_qp(qp)->qp, gid->raw));
}

EXPORT int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_detach_mcast, qp, gid, lid);
	return errno_set(
		-dev_qp_detach(to_ctx(qp->context)->dev, to_qp(qp)->qp, gid->raw));
}
