/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of the `server` target: a daemon and clients of several users in one thread.
 * Users, processes, time and random numbers are those of the input (see the functions in
 * server_world.c that the linker puts in the place of others), so that an input does the
 * same each time. Limits are small, and a part of each is reserved for each user.
 *
 * The honest client has a user of its own. It holds QPs, a group and a listener, and is
 * promised what is reserved for a user, whatever the others do.
 */
#ifndef ROCADE_TEST_SERVER_WORLD_H
#define ROCADE_TEST_SERVER_WORLD_H

#include "../unit/server/server_fixture.h"
#include "switch/sw_group.h"
#include "ucm/ucm_state.h"
#include "fuzz.h"

#define HOSTILES 6
#define HOSTILE_USERS 2
#define CHANNELS 3
#define QPNS 8
#define CLIENT_PAIRS 2 /* fewer than a client has partners */
#define ADDRESS "192.0.2.1"
#define GROUP "239.1.1.1"
#define HONEST_PORT 5000

struct client {
	int fd; /* -1: not connected */
	uint32_t uid;
	pid_t pid;
	bool deaf; /* it reads no replies */
	int channels[CHANNELS];
	uint32_t channel_numbers[CHANNELS];
	unsigned channel_count;
	int fds[SW_ATTACH_FDS]; /* of SW_ATTACH; fds[0] -1: none */
	struct region region;   /* mapped if region_len is not 0 */
	size_t region_len;
	uint32_t tx_prod;
	uint32_t qpns[QPNS]; /* the last ones that it was given */
	unsigned qpn_count;
	uint32_t pair_event, pair_partner; /* of the last reply to SW_PAIR */
	bool pair_lazy;        /* it allocates no pages of its part of a pair */
	struct sw_reply reply; /* the last one */
	struct sw_cm_reply cm_reply;
	unsigned replies, cm_replies; /* how many have come */
};

struct server_world {
	struct server_fixture b;
	struct ucm *ucm;
	uint64_t now;
	bool takes_fds; /* as with a kernel that does not refuse descriptors */
	struct client honest;
	struct client hostile[HOSTILES];
	/* the clients whose connections the daemon has not accepted yet */
	const struct client *connecting[64];
	unsigned connect_head, connect_tail;
};

extern struct server_world world;

/* ---- server_world.c ---- */

/* takes_fds: the daemon's sockets accept descriptors. few_qps: there are so few QPs that
 * two users can take all that is not reserved. */
void world_open(bool takes_fds, bool few_qps);
/* Ends all clients, and checks that nothing of them is left. */
void world_close(void);
/* One turn of the daemon's loop. Then all clients read their replies, but the deaf. */
void world_turn(void);
/* Time passes, and the daemon's timers fire. */
void world_wait(uint64_t ns);

void client_open(struct client *c);
/* Closes everything that the client has. */
void client_end(struct client *c);
/* Sends a message, with descriptors. */
void client_send(struct client *c, const void *bytes, size_t len, unsigned fds);
void client_ask(struct client *c, enum sw_request_type type, uint32_t qpn,
	uint32_t dest_qpn, const char *group);
void client_command(
	struct client *c, uint32_t channel, uint32_t cmd, const void *bytes, size_t len);
/* The honest client's requests. Both must be answered soon; they return the error. */
int honest_ask(enum sw_request_type type, uint32_t qpn, uint32_t dest_qpn);
int honest_command(uint32_t cmd, const void *bytes, size_t len);

/* ---- server_memory.c ---- */

/* Maps the memory that came with a reply to SW_ATTACH. */
void shared_map(struct client *c);
void shared_unmap(struct client *c);
/* Takes the reply to SW_PAIR, and closes the descriptor of the part that came with it; -1: none. */
void pair_event_take(struct client *c, const int *fds, unsigned n);
/* Overwrites it, publishes a packet, or changes the size, the holes or the seals. */
void memory_step(struct client *c, struct input *in);
/* Checks that no packet to a connected QP has come to the honest client. */
void memory_check(void);

/* ---- server_check.c ---- */

/* Checks all accounts against what is there, and that the honest client has what it had. */
void world_check(void);
/* Checks the first piece of a client's statistics: the daemon sends no more peers than the
 * client has QPs, and no impossible ones. */
void report_check(const struct sw_client *of, const uint8_t *bytes, uint32_t len);
/* Returns the client's RDMA-CM session, or NULL. */
const struct ucm_session *session_of(const struct client *c);

/* ---- server_steps.c ---- */

/* A request, and a command of RDMA-CM: any type, with names of anybody's objects. */
void request_step(struct client *c, struct input *in);
void command_step(struct client *c, struct input *in);
/* Connects QPs of two clients, or asks for the next event of the pairs, as if it had done what the
 * last one asked for, or something else. */
void pair_step(struct client *c, struct input *in);
/* The command that brings an ID of the client to its next state. */
void forward_step(struct client *c, struct input *in);
/* Takes many objects of a kind: more than the daemon frees in one pass when the client
 * ends. */
void hoard_step(struct client *c, struct input *in);
uint32_t qpn_take_any(struct input *in);

#endif
