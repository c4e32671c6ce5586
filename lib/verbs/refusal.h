/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of this process that Rocade has refused with EINVAL, or because of a queue that stays full: the
 * client library tells the user at the end (drivers/shm/advice.c). */
#ifndef ROCADE_VERBS_REFUSAL_H
#define ROCADE_VERBS_REFUSAL_H

#include <infiniband/verbs.h>

#include "engine/dev.h"

/* Static texts. */
struct refusal {
	const char *call;   /* NULL: none */
	const char *err;    /* "EINVAL" */
	const char *reason; /* NULL: not known */
};

/* Logs a call, at level info, if err is EOPNOTSUPP. Keeps a call if err is EINVAL and none is kept.
 * If err is 0, forgets a call of this name: programs find out by trying what a device can do (UCX:
 * the sizes of a QP). Sets errno unless err is 0. Returns err. Any thread. */
int refusal_note(int err, const char *call, const char *reason);

/* Keeps a post that a send queue refuses for ever, unless a call is kept. Any thread. */
void refusal_note_full(const char *call);

/* Why a path, or the attributes of ibv_modify_qp(), is refused, or NULL. */
const char *refusal_of_path(struct dev *dev, const struct ibv_ah_attr *ah);
const char *refusal_of_modify(struct dev *dev, const struct ibv_qp_attr *attr, int mask);

void refusal_get(struct refusal *out);
void refusal_reset(void); /* for a forked child, which has not made these calls */

#endif
