/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose listener has ended. For PORT_WAIT_NS only its user gets such a port again:
 * peers may still send the requests that are meant for this user. Internal to lib/ucm. May
 * be called by every file of it; calls none of them.
 */
#ifndef ROCADE_UCM_PORT_WAIT_H
#define ROCADE_UCM_PORT_WAIT_H

#include <sys/queue.h>

#include "base/common.h"

#define PORT_WAIT_NS (60 * NS_PER_SEC)
/* ports of one uid that wait; then the oldest one goes of its user with the most */
#define PORT_WAITS_USER 256
#define PORT_WAITS_ALL 4096 /* of all users; the oldest one goes first */
#define PORT_WAIT_BUCKETS 256

struct port_wait;
struct port_user;
struct ucm_addr;
TAILQ_HEAD(port_wait_list, port_wait); /* oldest first */
TAILQ_HEAD(port_user_list, port_user);

struct port_waits {
	struct port_wait_list all;
	struct port_wait_list by_port[PORT_WAIT_BUCKETS];
	struct port_user_list by_uid[PORT_WAIT_BUCKETS];
	uint32_t count;
};

/* A port and the addresses at which an ID has it, or wants it. */
struct ucm_binding {
	const struct ucm_addr *addr;
	uint16_t ps; /* port space: RDMA_PS_* */
	uint16_t port;
	bool afonly; /* a wildcard covers its own family only */
};

/* Returns whether one ID keeps another from the port: two IDs may have it if their
 * addresses differ, or if each is limited to its own family and the families differ. */
bool ucm_bindings_conflict(const struct ucm_binding *a, const struct ucm_binding *b);

void port_waits_init(struct port_waits *t);
void port_waits_fini(struct port_waits *t);
/* The user's listener ends. user: the uid in the low half; the upper half tells users apart that have the same
 * uid. The limits are by uid. */
void port_wait_begin(
	struct port_waits *t, const struct ucm_binding *b, uint64_t user, uint64_t now);
/* Returns whether the port waits for another user than this one. */
bool port_waits_for_other(const struct port_waits *t, const struct ucm_binding *b,
	uint64_t user, uint64_t now);

#endif
