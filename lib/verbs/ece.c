/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_query_ece(3), ibv_set_ece(3): by enhanced connection establishment (ECE) the two ends
 * of a connection agree on extensions (docs/protocol.md 20). librdmacm and <rocade/cm.h>
 * call them for a program. */
#include "verbs/forward.h"
#include "verbs/objects.h"
#include "wire/extensions.h"

/* A QP without any extension has options of 0, without a version: librdmacm sends them on
 * to peers of other vendors. */
static uint32_t
ece_options(uint32_t extensions)
{
	return extensions != 0 ? ext_options(extensions) : 0;
}

EXPORT int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	int extensions;

	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_query_ece, qp, ece);
	extensions = dev_qp_extensions(to_qp(qp)->qp);
	if (extensions < 0)
		return errno_set(-extensions);
	*ece = (struct ibv_ece){
		.vendor_id = EXT_VENDOR_ID, .options = ece_options((uint32_t)extensions)};
	return 0;
}

EXPORT int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	uint32_t common;
	int rc;

	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_set_ece, qp, ece);
	if (ece->comp_mask != 0)
		return errno_set(EINVAL);
	common = ext_common(ece->vendor_id, ece->options);
	rc = dev_qp_agree(to_qp(qp)->qp, common);
	if (rc == 0)
		ece->options = ece_options(common);
	return errno_set(-rc);
}
