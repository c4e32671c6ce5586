/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client and the daemon tell each other over their UNIX socket (SOCK_SEQPACKET): a
 * request of one size, a reply of one size, in turn. The reply to SW_ATTACH carries three
 * descriptors: the memory; an eventfd that wakes the daemon; a socket that becomes
 * readable to wake the client. (Descriptors of one open file share its flags: what the
 * daemon writes to must not be the client's to make blocking.)
 */
#ifndef ROCADE_SWITCH_PROTO_H
#define ROCADE_SWITCH_PROTO_H

#include "port/neigh.h"
#include "switch/region.h"
#include "ucm/abi.h"

#define SW_PROTO_MAGIC 0x726f6361u /* "roca" */
#define SW_PROTO_VERSION 2
#define SW_ATTACH_FDS 3
#define SW_NAME_MAX 64

enum sw_request_type {
	SW_HELLO = 1, /* what device there is */
	SW_ATTACH,    /* rings and memory */
	SW_QPN_TAKE,
	SW_QPN_GIVE,
	SW_PEER_SET,
	SW_GROUP_JOIN,
	SW_GROUP_LEAVE,
	SW_STATUS, /* the reply carries a descriptor: a text in JSON */
	/* Asks the clients for their reports, unless that was just done; with qpn 1 it does
	 * not ask. The reply's qpn: how many have not answered yet. */
	SW_REPORT_ASK,
	/* The report of the first client with the id qpn or above: its id, and a descriptor:
	 * a struct report, as many rows of QPs as it has. ENOENT: there is none; EPERM: it is
	 * another user's. */
	SW_REPORT,
	/* A channel of RDMA-CM, for the process: the reply carries a socket, and the
	 * channel's number in qpn. */
	SW_CM_OPEN,
	SW_CM_COMMAND, /* a struct sw_cm_request, answered by a struct sw_cm_reply */
};

struct sw_request {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t reserved;
	uint8_t sgid[16];
	uint8_t dgid[16]; /* or the group's */
};
static_assert(sizeof(struct sw_request) == 56, "the same in every build");

struct sw_device {
	char name[SW_NAME_MAX];
	struct net_conf net;
	uint32_t mtu;
	uint32_t qpn_base;
	uint32_t qpn_count;
	uint32_t max_qp; /* for this client */
	uint8_t link_up;
	uint8_t local; /* no port: between clients only */
	uint8_t reserved[2];
	uint32_t max_mr; /* for this client; 0: as many as there can be */
};

struct sw_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t type; /* of the request */
	int32_t error; /* 0 or an errno value */
	uint32_t qpn;
	uint32_t client_id;
	struct region_geom geom;
	struct sw_device device;
};

/*
 * A command of RDMA-CM (ucm/abi.h). A process's connection for these need not be
 * attached. On a channel's socket comes a number (32 bits) each time that the channel,
 * which had no event, has one; a reply says how many these were, and whether there is an
 * event now: where there is none all of them are out of date.
 */
struct sw_cm_request {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t channel;
	uint32_t cmd;
	uint32_t len;
	uint8_t bytes[UCM_MAX];
};

struct sw_cm_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	int32_t error;
	uint32_t len;
	uint32_t wakes;
	uint32_t pending;
	uint32_t reserved;
	uint8_t bytes[UCM_MAX];
};
static_assert(sizeof(struct sw_cm_request) == 24 + UCM_MAX &&
		      sizeof(struct sw_cm_reply) == 32 + UCM_MAX,
	"the same in every build");

struct sw;
struct sw_client;

/*
 * Serves a request of len bytes: everything but SW_ATTACH, SW_STATUS, SW_CM_OPEN and the
 * reports, which are the caller's when reply->error is 0, with the request's qpn in
 * reply->qpn. client: NULL before it is attached. False: this is not the protocol at all,
 * the caller hangs up.
 */
bool
sw_serve(struct sw *sw, const struct sw_device *device, struct sw_client *client,
	const void *request, size_t len, struct sw_reply *reply);

#endif
