/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about the port's addresses. They read the configuration only, and take no
 * lock. Called from lib/port and the layers above. */
#ifndef ROCADE_PORT_NET_ADDR_H
#define ROCADE_PORT_NET_ADDR_H

#include "port/net.h"

/* Returns 0 or -EINVAL, for the reasons that net_create() names. */
int net_conf_check(const struct net_conf *conf);
bool net_is_ours(const struct net_conf *conf, const uint8_t gid[16]);
bool net_is_onlink(const struct net_conf *conf, const uint8_t gid[16]);
/* Returns whether gid is the broadcast address or the network address (host bits 0) of
 * one of our subnets. */
bool net_is_broadcast(const struct net_conf *conf, const uint8_t gid[16]);
/* Returns the source address for requests about target, NULL if there is none of that
 * family. */
const uint8_t *net_source(const struct net_conf *conf, const uint8_t target[16]);
/* Returns 0 or -ENETUNREACH. */
int net_next_hop(const struct net_conf *conf, const uint8_t dst[16], uint8_t hop[16]);

#endif
