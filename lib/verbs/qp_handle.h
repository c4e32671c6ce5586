/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation of handles of QPs: a struct verbs_sender, or a struct verbs_qp of an XRC
 * target. For the files that create QPs: verbs_qp.c and verbs_xrc.c. */
#ifndef ROCADE_VERBS_QP_HANDLE_H
#define ROCADE_VERBS_QP_HANDLE_H

#include "verbs/objects.h"

/* Allocates a verbs_qp, zeroed but for its context: with ex and wr if extended, as part of
 * a struct verbs_sender if sends. Returns NULL if there is no memory. */
struct verbs_qp *verbs_qp_alloc(struct ibv_context *context, bool extended, bool sends);
void verbs_qp_free(struct verbs_qp *vqp);
/* Fills in the public part from vqp->qp, and initialises its mutex and condition
 * variable. */
void verbs_qp_publish(struct verbs_qp *vqp);

#endif
