/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of pairs (switch/sw_pair.h): two parts, each written by one client. The daemon has
 * their descriptors until both clients have mapped them, and maps neither. */
#ifndef ROCADE_SERVER_PAIR_H
#define ROCADE_SERVER_PAIR_H

#include "server/server.h"
#include "switch/sw_pair.h"

extern const struct sw_pair_ops server_pair_ops;

/* Called by server_conn.c: the descriptor that goes with this reply to SW_PAIR, which stays the
 * daemon's; -1: none. */
int server_pair_fd(struct sw_client *client, const struct sw_reply *reply);

#endif
