/* SPDX-License-Identifier: BSD-3-Clause */
/* Half-open connections, which another host has asked for and not confirmed, oldest
 * first: all, by listener, and by source address. Internal to lib/cm: the members change
 * in state.c and listen.c. */
#ifndef ROCADE_CM_HALF_OPEN_H
#define ROCADE_CM_HALF_OPEN_H

#include "cm/cm_types.h"

void half_open_init(struct cm *cm);
/* Adds a connection: its request has come from the path's peer to the listener. */
void half_open_add(
	struct cm_conn *conn, struct cm_listener *listener, const struct cm_path *path);
/* The connection was confirmed or has ended. No effect on one that is not half-open. */
void half_open_remove(struct cm_conn *conn);
/* The listener, which is in no list of listeners any more, ends. It is freed when the last
 * connection that has come to it is confirmed or has ended. */
void half_open_forget_listener(struct cm_listener *listener);
/* Returns the connection that has to end before the listener gets another request from
 * the path's peer: the oldest one of a list that is at its limit, or NULL. */
struct cm_conn *half_open_excess(
	struct cm *cm, struct cm_listener *listener, const struct cm_path *path);
/* Returns the oldest one, or NULL. */
struct cm_conn *half_open_oldest(const struct cm *cm);

#endif
