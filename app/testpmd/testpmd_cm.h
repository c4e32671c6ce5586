/* SPDX-License-Identifier: BSD-3-Clause */
/* Between testpmd_cm.c, which asks, and testpmd_cm_events.c. */
#ifndef TESTPMD_CM_H
#define TESTPMD_CM_H

#include <rocade/cm.h>

#include "host.h"

#define CM_REQUEST_MAGIC "RTPD"

/* Private data of a request. */
struct conn_request {
	char magic[4];
	uint8_t index[4]; /* big-endian */
};

struct rocade_cm_param cm_param(const struct host *host);
bool cm_conn_is_lost(const struct conn *conn);
/* Requests the connection of a QP. Returns 0 or an errno value. */
int cm_conn_request(struct host *host, struct conn *conn);
/* The peer of a port that has this address; -1: none. */
int cm_peer_find(const struct port_conf *pc, const union ibv_gid *gid);

#endif
