/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and commands of the hostile clients. */
#include "server_world.h"

#define PORTS_FIRST 4998 /* a few around that of the honest client's listener */
#define FIRST_QPN 0x1000
#define HOARD 40

uint32_t
qpn_take_any(struct input *in)
{
	uint8_t which = take8(in);

	switch (which >> 6) {
	case 0:
		return world.honest.qpns[which & 1];
	case 1:
		return which & 2 ? QPN_MULTICAST : which & 1;
	case 2:
		return world.hostile[which % HOSTILES].qpns[which >> 3 & (QPNS - 1)];
	default:
		return FIRST_QPN + which % 64;
	}
}

static void
address_take(struct input *in, uint8_t gid[16])
{
	static const char *const addresses[] = {
		ADDRESS, GROUP, "192.0.2.9", "ff02::9", "fe80::1", "239.1.1.2"};

	FUZZ_CHECK(gid_parse(addresses[take8(in) % RTE_DIM(addresses)], gid, NULL) == 0);
}

/* Changes some bytes. */
static void
bytes_bend(struct input *in, void *bytes, size_t len)
{
	for (unsigned i = take8(in) % 4; i != 0; i--) {
		size_t at = take8(in) % len;

		((uint8_t *)bytes)[at] = take8(in);
	}
}

void
request_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in), more = take8(in);
	union {
		struct sw_request req;
		uint8_t bytes[sizeof(struct sw_cm_request) + 8];
	} message = {.req = {.magic = SW_PROTO_MAGIC,
			     .version = SW_PROTO_VERSION,
			     .type = how % 16,
			     .qpn = qpn_take_any(in),
			     .dest_qpn = qpn_take_any(in)}};
	size_t len = sizeof(message.req);
	unsigned fds = 0;

	/* Of a status or a report: a part, an id and a place. */
	if (how & 16) {
		message.req.qpn = take8(in) % 4;
		message.req.dest_qpn = take16(in);
	}
	address_take(in, message.req.sgid);
	address_take(in, message.req.dgid);
	if (how & 32)
		bytes_bend(in, &message, sizeof(message.req));
	if (how & 64)
		len = take16(in) % sizeof(message);
	if (how & 128)
		fds = more & 1 ? 253 : more % 8;
	client_send(c, &message, len, fds);
}

void
pair_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in), more = take8(in);
	struct client *other = &world.hostile[more % HOSTILES];
	uint32_t partner = c->pair_partner, event = c->pair_event;

	switch (how % 8) {
	case 0:
	case 1: /* the QPs that they took first: none connects one with itself */
		client_ask(c, SW_PEER_SET, c->qpns[how >> 3 & 1],
			other->qpns[how >> 4 & 1], NULL);
		client_ask(other, SW_PEER_SET, other->qpns[how >> 4 & 1],
			c->qpns[how >> 3 & 1], NULL);
		return;
	case 2:
		client_ask(c, SW_PEER_CLEAR, c->qpns[how >> 3 & 1], 0, NULL);
		return;
	case 3:
		c->pair_lazy = !c->pair_lazy;
		return;
	case 4:
		event = how >> 3;
		break;
	case 5: /* ids are given in turn from 1 on */
		partner = more;
		break;
	case 7: /* it has taken its packets, or says so */
		client_ask(c, SW_TAKEN, more, 0, NULL);
		return;
	default:
		break;
	}
	client_ask(c, SW_PAIR, partner, event, NULL);
}

static struct sockaddr_in
sockaddr_take(struct input *in)
{
	uint8_t how = take8(in);
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = rte_cpu_to_be_16(PORTS_FIRST + how % 8)};

	if (how & 8)
		sa.sin_addr.s_addr = rte_cpu_to_be_32(0xC0000201); /* ADDRESS */
	if (how & 16)
		sa.sin_port = how & 32 ? rte_cpu_to_be_16(111) : 0;
	if (how & 64)
		sa.sin_addr.s_addr = rte_cpu_to_be_32(how & 128 ? 0xEF010101 /* GROUP */
								: 0xC0000209);
	return sa;
}

union command {
	struct rdma_ucm_create_id create_id;
	struct rdma_ucm_destroy_id destroy_id;
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_bind bind;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_resolve_addr resolve_addr;
	struct rdma_ucm_resolve_route resolve_route;
	struct rdma_ucm_query query;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_listen listen;
	struct rdma_ucm_accept accept;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_init_qp_attr init_qp_attr;
	struct ucm_set_option set_option;
	struct rdma_ucm_notify notify;
	struct rdma_ucm_join_ip_mcast join_ip_mcast;
	struct rdma_ucm_join_mcast join_mcast;
	struct rdma_ucm_migrate_id migrate_id;
	uint8_t bytes[UCM_MAX + 8];
};

static uint16_t
port_space_take(struct input *in)
{
	static const uint16_t spaces[] = {
		RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB};

	return spaces[take8(in) % RTE_DIM(spaces)];
}

static void
option_fill(struct ucm_set_option *option, uint32_t id, struct input *in)
{
	option->head.id = id;
	option->head.optname = take8(in) % 5;
	option->head.optlen = take8(in) & 1 ? 4 : 1;
	option->value[0] = take8(in);
}

/* Commands with an address. */
static bool
address_fill(union command *u, uint32_t cmd, uint32_t id, struct input *in)
{
	struct sockaddr_in sa = sockaddr_take(in);

	switch (cmd) {
	case RDMA_USER_CM_CMD_BIND_IP:
		u->bind_ip.id = id;
		memcpy(&u->bind_ip.addr, &sa, sizeof(sa));
		return true;
	case RDMA_USER_CM_CMD_BIND:
		u->bind.id = id;
		u->bind.addr_size = take8(in);
		memcpy(&u->bind.addr, &sa, sizeof(sa));
		return true;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		u->resolve_ip.id = id;
		memcpy(&u->resolve_ip.dst_addr, &sa, sizeof(sa));
		return true;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		u->resolve_addr.id = id;
		u->resolve_addr.dst_size = take8(in);
		memcpy(&u->resolve_addr.dst_addr, &sa, sizeof(sa));
		return true;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		u->join_ip_mcast.id = id;
		memcpy(&u->join_ip_mcast.addr, &sa, sizeof(sa));
		return true;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		u->join_mcast.id = id;
		u->join_mcast.addr_size = take8(in);
		memcpy(&u->join_mcast.addr, &sa, sizeof(sa));
		return true;
	default:
		return false;
	}
}

static void
command_fill(union command *u, uint32_t cmd, uint32_t id, struct input *in)
{
	switch (cmd) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		u->create_id.ps = port_space_take(in);
		break;
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		u->destroy_id.id = id;
		break;
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
		u->query.id = id;
		u->query.option = take8(in) % 4;
		break;
	case RDMA_USER_CM_CMD_CONNECT:
		u->connect.id = id;
		u->connect.conn_param.qp_num = qpn_take_any(in);
		u->connect.conn_param.private_data_len = take8(in);
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		u->accept.id = id;
		u->accept.conn_param.qp_num = qpn_take_any(in);
		u->accept.conn_param.valid = take8(in) & 1;
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		u->init_qp_attr.id = id;
		u->init_qp_attr.qp_state = take8(in) % 8;
		break;
	case RDMA_USER_CM_CMD_SET_OPTION:
		option_fill(&u->set_option, id, in);
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		u->migrate_id.id = id;
		u->migrate_id.fd = take8(in) % 8;
		break;
	default: /* the ID comes first, and a value may follow */
		if (!address_fill(u, cmd, id, in)) {
			u->listen.id = id;
			u->listen.backlog = take8(in);
		}
		break;
	}
}

void
command_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in);
	uint32_t channel = how & 32 ? take8(in) % 8u : c->channel_numbers[how >> 6 & 1];
	uint32_t cmd = take8(in) % (RDMA_USER_CM_CMD_JOIN_MCAST + 2), id = 1 + how % 32u;
	size_t len = sizeof(union command) - 8;
	union command u = {.bytes = {0}};

	command_fill(&u, cmd, id, in);
	if (take8(in) & 1) {
		bytes_bend(in, &u, sizeof(u));
		len = take16(in) % (sizeof(u) + 1);
	}
	client_command(c, channel, cmd, &u, len);
}

/* Returns the first ID of the session from slot `from` on, or NULL. */
static const struct ucm_id *
id_from(const struct ucm_session *s, unsigned from)
{
	for (uint32_t i = 0; i < s->ids.size; i++) {
		const struct ucm_id *id = s->ids.slots[(from + i) % s->ids.size];

		if (id != NULL)
			return id;
	}
	return NULL;
}

/* Returns the next command of a program in this state. */
static uint32_t
next_command(const struct ucm_id *id, bool listens)
{
	if (!TAILQ_EMPTY(&id->channel->events))
		return RDMA_USER_CM_CMD_GET_EVENT;
	switch (id->state) {
	case UCM_IDLE:
		return listens ? RDMA_USER_CM_CMD_BIND_IP : RDMA_USER_CM_CMD_RESOLVE_IP;
	case UCM_BOUND:
		return RDMA_USER_CM_CMD_LISTEN;
	case UCM_ADDR:
		return RDMA_USER_CM_CMD_RESOLVE_ROUTE;
	case UCM_ROUTE:
		return RDMA_USER_CM_CMD_CONNECT;
	case UCM_CONNECT:
		return RDMA_USER_CM_CMD_ACCEPT;
	case UCM_ACCEPTED:
		return RDMA_USER_CM_CMD_DISCONNECT;
	default:
		return RDMA_USER_CM_CMD_CREATE_ID;
	}
}

void
forward_step(struct client *c, struct input *in)
{
	const struct ucm_session *s = session_of(c);
	const struct ucm_id *id;
	union command u = {.bytes = {0}};
	uint8_t how = take8(in);
	uint32_t cmd;

	if (s == NULL || s->channels.used == 0)
		return;
	id = id_from(s, how & 31);
	if (id == NULL) {
		u.create_id.ps = how & 32 ? RDMA_PS_UDP : RDMA_PS_TCP;
		client_command(c, c->channel_numbers[0], RDMA_USER_CM_CMD_CREATE_ID, &u,
			sizeof(u) - 8);
		return;
	}
	cmd = next_command(id, (how & 128) != 0);
	command_fill(&u, cmd, id->number, in);
	if (cmd == RDMA_USER_CM_CMD_CONNECT)
		u.connect.conn_param = (struct rdma_ucm_conn_param){
			.qp_num = how & 32 ? u.connect.conn_param.qp_num : c->qpns[0]};
	if (cmd == RDMA_USER_CM_CMD_ACCEPT && !(how & 32))
		u.accept.conn_param.qp_num = c->qpns[0];
	if (cmd == RDMA_USER_CM_CMD_ACCEPT)
		u.accept.conn_param.valid = how >> 6 & 1;
	client_command(c, id->channel->number, cmd, &u, sizeof(u) - 8);
}

void
hoard_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in);
	union command u = {.bytes = {0}};

	for (unsigned i = 0; i < HOARD; i++) {
		if (how % 4 == 0) {
			client_ask(c, SW_QPN_TAKE, 0, 0, NULL);
		} else if (how % 4 == 1) {
			u.create_id.ps = RDMA_PS_TCP;
			client_command(c, c->channel_numbers[0],
				RDMA_USER_CM_CMD_CREATE_ID, &u, sizeof(u) - 8);
		} else if (how % 4 == 2) { /* a port of the daemon's choice */
			u.bind_ip.id = 1 + i;
			u.bind_ip.addr.sin6_family = AF_INET;
			client_command(c, c->channel_numbers[0], RDMA_USER_CM_CMD_BIND_IP,
				&u, sizeof(u) - 8);
		} else {
			u.listen = (struct rdma_ucm_listen){.id = 1 + i, .backlog = 2};
			client_command(c, c->channel_numbers[0], RDMA_USER_CM_CMD_LISTEN,
				&u, sizeof(u) - 8);
		}
		if (i % 8 == 7) /* the daemon takes no more at once */
			world_turn();
	}
}
