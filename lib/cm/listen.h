/* SPDX-License-Identifier: BSD-3-Clause */
/* Lookup of listeners. Internal to lib/cm: for received requests (cm_rx_req.c,
 * cm_rx_sidr.c). */
#ifndef ROCADE_CM_LISTEN_H
#define ROCADE_CM_LISTEN_H

#include "cm/cm_types.h"

/* Returns the listener on exactly this address, else on its family, else on all
 * addresses. */
struct cm_listener *listener_find(
	struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16]);
/* Returns a connection in this state for a new request of the path's peer. Returns NULL
 * if the backlog is full or no connection is left. */
struct cm_conn *listener_conn(struct cm_listener *listener, enum cm_state state,
	const struct cm_path *path, uint64_t now);

#endif
