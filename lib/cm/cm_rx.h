/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of received messages. Internal to lib/cm: cm_rx.c alone calls them. */
#ifndef ROCADE_CM_CM_RX_H
#define ROCADE_CM_CM_RX_H

#include "cm/cm_types.h"

/* Return CM_DROP_none, or why the message was dropped. */
enum cm_drop req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop sidr_req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);
enum cm_drop sidr_rep_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now);

/* Return whether the message is for a listener or a connection. */
bool req_claims(struct cm *cm, const struct mad *mad, const struct cm_path *path);
bool sidr_req_claims(struct cm *cm, const struct mad *mad, const struct cm_path *path);
bool sidr_rep_claims(struct cm *cm, const struct mad *mad);

#endif
