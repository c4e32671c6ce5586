/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts between struct ibv_qp_attr and struct qp_attr of lib/qp. */
#ifndef ROCADE_VERBS_ATTR_H
#define ROCADE_VERBS_ATTR_H

#include "verbs/objects.h"

/* Reads a path and looks up its source address. Returns 0 or EINVAL. */
int qp_path_read(struct dev *dev, const struct ibv_ah_attr *ah, struct qp_path *out);

/* Reads the members that mask names, with the source GID looked up. Returns 0 or
 * EINVAL. */
int qp_attr_read(
	struct dev *dev, const struct ibv_qp_attr *attr, int mask, struct qp_attr *out);

/* Writes all members but the capabilities. */
void qp_attr_write(const struct qp_attr *core, struct ibv_qp_attr *attr);

#endif
