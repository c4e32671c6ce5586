/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of pairs (switch/sw_pair.h): two parts, each written by one client. The daemon has
 * their descriptors until both clients have mapped them, and maps neither. Until then it also has the ends
 * of the connection by which the clients wake each other. */
#ifndef ROCADE_SERVER_PAIR_H
#define ROCADE_SERVER_PAIR_H

#include "server/server.h"
#include "switch/sw_pair.h"

extern const struct sw_pair_ops server_pair_ops;

/* Called by server_conn.c: writes the descriptors that go with this reply to SW_PAIR, which stay the
 * daemon's. Returns how many. */
unsigned server_pair_fds(
	struct sw_client *client, const struct sw_reply *reply, int *fds);

#endif
