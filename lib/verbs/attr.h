/* SPDX-License-Identifier: BSD-3-Clause */
/* struct ibv_qp_attr <-> what the core takes. */
#ifndef ROCADE_VERBS_ATTR_H
#define ROCADE_VERBS_ATTR_H

#include "verbs/objects.h"

/* A path with its source address looked up: 0 or EINVAL. */
int qp_path_read(
	struct dev *dev, const struct ibv_ah_attr *ah, struct qp_path *out);

/* Reads what mask names; the source GID is looked up. 0 or EINVAL. */
int qp_attr_read(struct dev *dev, const struct ibv_qp_attr *attr, int mask,
	struct qp_attr *out);

/* Everything but the capabilities. */
void qp_attr_write(const struct qp_attr *core, struct ibv_qp_attr *attr);

#endif
