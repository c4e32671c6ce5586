/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes with a channel each over one connection manager. */
#ifndef ROCADE_TEST_UCM_FIXTURE_H
#define ROCADE_TEST_UCM_FIXTURE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_request.h"

#define MAX_IDS 8
#define MAX_CHANNELS 4
#define SERVER_QPN 0x100 /* to 0x10f: the server's; 0x200 to 0x20f: the client's */
#define CLIENT_QPN 0x200
#define LISTEN_PORT 7471

struct test_process {
	struct ucm_session *session;
	struct ucm_channel *channel;
	uint32_t number;          /* the channel's */
	uint32_t woken;           /* by the event with this number */
	uint32_t wakes;           /* how often */
	uint32_t base;            /* its first QPN */
	struct ucm_result result; /* of the last command */
};

struct ucm_fixture {
	struct ucm *ucm;
	struct ucm_device *device;
	struct test_process server, client;
	uint64_t now;
	struct mad sent; /* the last message to another machine */
	struct cm_path sent_path;
	unsigned sent_count;
	uint32_t ended[2]; /* QPs whose connection the peer has ended, the last ones */
	unsigned ended_count;
	uint32_t ended_woken[2]; /* the server's wake-ups until then */
	bool takes;              /* events wait for the taker */
	struct ucm_taker taker;
};

struct id_pair {
	uint32_t listener, passive, active;
};

extern struct ucm_fixture ctx;

/* ops_send: whether other machines can be reached. */
void fixture_open(bool ops_send);
/* The same with room for another number of connections than 64. */
void fixture_open_sized(bool ops_send, uint32_t max_conns);
/* Proves that no id and no connection is left. */
void fixture_close(void);
/* The same for cmocka, without other machines. */
int ucm_setup(void **state);
int ucm_teardown(void **state);

int command_run(
	struct test_process *p, uint32_t cmd, const void *in, size_t len, void *out);
#define COMMAND(p, name, in, out)                                                        \
	command_run(p, RDMA_USER_CM_CMD_##name, in, sizeof(*(in)), out)

uint32_t make_id(struct test_process *p, uint16_t ps);
int destroy_id(struct test_process *p, uint32_t id, uint32_t *events);
/* text: an address, or NULL for the wildcard of IPv4. */
struct sockaddr_in6 sockaddr_of(const char *text, uint16_t port);
int bind_id(struct test_process *p, uint32_t id, const char *text, uint16_t port);
int listen_id(struct test_process *p, uint32_t id, uint32_t backlog);
int resolve_addr(struct test_process *p, uint32_t id, const char *text, uint16_t port);
int resolve_route(struct test_process *p, uint32_t id);
/* Resolves the route of an ID whose address is being resolved, and connects it. */
void connect_resolving(struct test_process *p, uint32_t id, uint32_t qpn);
int connect_id(struct test_process *p, uint32_t id, uint32_t qpn, const char *private);
/* qpn 0: without connection parameters. */
int accept_id(struct test_process *p, uint32_t id, uint64_t uid, uint32_t qpn);
int disconnect_id(struct test_process *p, uint32_t id);
/* Returns the next event, which must be of this type. */
struct rdma_ucm_event_resp expect_event(struct test_process *p, enum ucm_event_type type);
/* Advances past the time that a request to an unbound port is deferred. It is rejected
 * then. */
void deferral_end(void);
void expect_no_event(struct test_process *p);
struct ib_uverbs_qp_attr qp_attr_of(struct test_process *p, uint32_t id, uint32_t state);

/* Returns an id of the client with a route to the server's port. */
uint32_t make_routed_id(uint16_t ps);
uint32_t make_listener(uint16_t ps);
struct id_pair pair_requested(uint16_t ps); /* the request is not accepted yet */
struct id_pair pair_connected(void);

#endif
