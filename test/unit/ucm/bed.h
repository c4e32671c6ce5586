/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes with a channel each over one connection manager. */
#ifndef ROCADE_TEST_UCM_BED_H
#define ROCADE_TEST_UCM_BED_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ucm/ucm_internal.h"

#include <cmocka.h>

#define BED_IDS 8
#define BED_CHANNELS 4
#define BED_SERVER_QPN                                                                   \
	0x100 /* to 0x10f: the server's; 0x200 to 0x20f: the client's */
#define BED_CLIENT_QPN 0x200
#define BED_PORT 7471

struct bed_process {
	struct ucm_session *session;
	struct ucm_channel *channel;
	uint32_t number; /* the channel's */
	uint32_t woken;
	uint32_t base;            /* its first QPN */
	struct ucm_result result; /* of the last command */
};

struct bed {
	struct ucm *ucm;
	struct bed_process server, client;
	uint64_t now;
	struct mad sent; /* the last message to another machine */
	struct cm_path sent_path;
	unsigned sent_count;
};

struct bed_pair {
	uint32_t listener, passive, active;
};

extern struct bed bed;

/* ops_send: whether other machines can be reached. */
void
bed_open(bool ops_send);
/* Proves that no id and no connection is left. */
void
bed_close(void);
/* The same for cmocka, without other machines. */
int
bed_setup(void **state);
int
bed_teardown(void **state);

int
bed_do(struct bed_process *p, uint32_t cmd, const void *in, size_t len, void *out);
#define BED(p, name, in, out) bed_do(p, RDMA_USER_CM_CMD_##name, in, sizeof(*(in)), out)

uint32_t
bed_id(struct bed_process *p, uint16_t ps);
int
bed_destroy(struct bed_process *p, uint32_t id, uint32_t *events);
/* text: an address, or NULL for the wildcard of IPv4. */
struct sockaddr_in6
bed_sa(const char *text, uint16_t port);
int
bed_bind(struct bed_process *p, uint32_t id, const char *text, uint16_t port);
int
bed_listen(struct bed_process *p, uint32_t id, uint32_t backlog);
int
bed_resolve(struct bed_process *p, uint32_t id, const char *text, uint16_t port);
int
bed_route(struct bed_process *p, uint32_t id);
int
bed_connect(struct bed_process *p, uint32_t id, uint32_t qpn, const char *private);
/* qpn 0: without connection parameters. */
int
bed_accept(struct bed_process *p, uint32_t id, uint64_t uid, uint32_t qpn);
int
bed_disconnect(struct bed_process *p, uint32_t id);
/* Returns the next event, which must be of this type. */
struct rdma_ucm_event_resp
bed_event(struct bed_process *p, enum ucm_event_type type);
/* Advances past the time that a request to an unbound port is deferred. It is rejected
 * then. */
void
bed_hold_end(void);
void
bed_no_event(struct bed_process *p);
struct ib_uverbs_qp_attr
bed_attr(struct bed_process *p, uint32_t id, uint32_t state);

/* Returns an id of the client with a route to the server's port. */
uint32_t
bed_routed(uint16_t ps);
uint32_t
bed_listener(uint16_t ps);
struct bed_pair
bed_requested(uint16_t ps); /* the request is not accepted yet */
struct bed_pair
bed_connected(void);

#endif
