/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's server: clients of several users connect, send requests and commands of
 * RDMA-CM, whole or bent, with and without descriptors, change their memory, and end. After
 * each step everything is charged to the right user, no user has more than it may, and a
 * client of another user still has what it had and gets what is reserved for it. At the
 * end nothing is left.
 */
#include "server_world.h"

#define STEPS 200

/* A connection with memory and an RDMA-CM channel, as a correct client opens it. */
static void
attach_step(struct client *c)
{
	client_open(c);
	world_turn();
	client_ask(c, SW_ATTACH, 0, 0, NULL);
	world_turn();
	client_ask(c, SW_START, 0, 0, NULL);
	client_ask(c, SW_CM_OPEN, 0, 0, NULL);
	world_turn();
	client_ask(c, SW_QPN_TAKE, 0, 0, NULL);
}

static void
raw_step(struct client *c, struct input *in)
{
	size_t len = take16(in) % 1024;
	const uint8_t *bytes = take_bytes(in, &len);

	client_send(c, bytes, len, 0);
}

/* Ends a part of the client, or all of it. */
static void
end_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in);
	uint64_t one = 1;

	switch (how % 8) {
	case 0:
	case 1:
		client_end(c);
		break;
	case 2: /* its other descriptors stay */
		if (c->fd >= 0)
			(void)shutdown(c->fd, SHUT_RDWR);
		break;
	case 3:
	case 4:
		if (c->channel_count != 0) {
			close(c->channels[--c->channel_count]);
			c->channels[c->channel_count] = -1;
		}
		break;
	case 5:
		if (c->fds[1] >= 0)
			(void)!write(c->fds[1], &one, sizeof(one));
		break;
	case 6: /* the descriptor of its wake-ups */
		if (c->fds[2] >= 0)
			close(c->fds[2]);
		c->fds[2] = -1;
		break;
	default:
		c->deaf = !c->deaf;
		break;
	}
}

/* The honest client reads its events, and rejects the requests to its listener. */
static void
honest_events_read(void)
{
	struct rdma_ucm_get_event get = {0};
	struct rdma_ucm_event_resp event;
	struct rdma_ucm_destroy_id destroy = {0};
	unsigned n = 0;

	while (honest_command(RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get)) == 0) {
		FUZZ_CHECK(n++ < 1000);
		memcpy(&event, world.honest.cm_reply.bytes, sizeof(event));
		destroy.id = event.id;
		if (event.event == UCM_EVENT_CONNECT_REQUEST)
			FUZZ_CHECK(honest_command(RDMA_USER_CM_CMD_DESTROY_ID, &destroy,
					   sizeof(destroy)) == 0);
	}
	FUZZ_CHECK(world.honest.cm_reply.error == EAGAIN);
}

/* It takes what is reserved for its user, and gives it back. */
static void
honest_step(void)
{
	struct client *c = &world.honest;
	struct rdma_ucm_create_id create = {.ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp created;
	struct rdma_ucm_bind_ip bind = {.id = 0};
	struct rdma_ucm_destroy_id destroy = {.id = 0};

	honest_events_read();
	FUZZ_CHECK(honest_ask(SW_QPN_TAKE, 0, 0) == 0);
	c->qpn_count--;
	FUZZ_CHECK(honest_ask(SW_GROUP_JOIN, c->qpns[2], 0) == 0);
	FUZZ_CHECK(honest_ask(SW_QPN_GIVE, c->qpns[2], 0) == 0);
	FUZZ_CHECK(
		honest_command(RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create)) == 0);
	memcpy(&created, c->cm_reply.bytes, sizeof(created));
	bind.id = destroy.id = created.id;
	bind.addr.sin6_family = AF_INET;
	FUZZ_CHECK(honest_command(RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind)) == 0);
	FUZZ_CHECK(honest_command(
			   RDMA_USER_CM_CMD_DESTROY_ID, &destroy, sizeof(destroy)) == 0);
}

static void
step_run(struct input *in)
{
	uint8_t op = take8(in);
	struct client *c = &world.hostile[(op >> 4) % HOSTILES];

	switch (op % 16) {
	case 0:
		if (c->region_len != 0)
			hoard_step(c, in);
		else
			client_open(c);
		break;
	case 1:
		attach_step(c);
		break;
	case 2:
	case 3:
		request_step(c, in);
		break;
	case 4:
		pair_step(c, in);
		break;
	case 5:
		raw_step(c, in);
		break;
	case 6:
	case 7:
	case 8:
		command_step(c, in);
		break;
	case 9:
	case 10:
	case 11:
		forward_step(c, in);
		break;
	case 12:
		memory_step(c, in);
		break;
	case 13:
		end_step(c, in);
		break;
	case 14:
		world_wait((uint64_t)take8(in) << (op >> 3));
		break;
	default:
		honest_step();
		break;
	}
	if (take8(in) & 1)
		return; /* the daemon does not see it before the next one */
	world_turn();
	world_check();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	uint8_t how = take8(&in);

	world_open((how & 1) != 0, (how & 2) != 0);
	for (unsigned i = 0; i < STEPS && in.left != 0; i++)
		step_run(&in);
	world_turn();
	world_check();
	world_close();
	return 0;
}
