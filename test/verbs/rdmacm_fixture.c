/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rocade/rdmacm.h>

#include "await.h"
#include "case.h"
#include "rdmacm_fixture.h"

struct rocade_port *ports[2];
static pthread_t poller;
static bool stop;

static void *
ports_poll(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (unsigned i = 0; i < 2; i++) {
			if (ports[i] != NULL)
				rocade_engine_poll(rocade_port_engine(ports[i], 0));
		}
		sched_yield();
	}
	return NULL;
}

static void
poller_start(void)
{
	stop = false;
	assert_int_equal(pthread_create(&poller, NULL, ports_poll, NULL), 0);
}

static void
poller_stop(void)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(poller, NULL), 0);
}

void
ports_open(void)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = ADDR_A "/24"},
		{.size = sizeof(conf[0]), .addresses = ADDR_B "/24"},
	};

	assert_int_equal(rocade_rdmacm_check(), 0);
	assert_int_equal(rocade_open_loop(conf, ports), 0);
	poller_start();
}

void
port_close(unsigned port)
{
	poller_stop();
	assert_int_equal(rocade_close_port(ports[port]), 0);
	ports[port] = NULL;
	poller_start();
}

void
ports_close(void)
{
	poller_stop();
	for (unsigned i = 0; i < 2; i++) {
		if (ports[i] != NULL)
			assert_int_equal(rocade_close_port(ports[i]), 0);
	}
}

uint64_t
port_stat(unsigned port, const char *name)
{
	struct rocade_stat rows[128];
	unsigned n = rocade_port_stats(ports[port], -1, rows, 128);

	for (unsigned i = 0; i < n && i < 128; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

struct sockaddr_storage *
addr_of(const char *text, uint16_t port)
{
	static struct sockaddr_storage made[4];
	static unsigned next;
	struct sockaddr_storage *sa = &made[next++ % 4];
	struct sockaddr_in *in = (struct sockaddr_in *)sa;

	memset(sa, 0, sizeof(*sa));
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return sa;
}

struct rdma_event_channel *
channel_new(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (channel == NULL)
		fail_msg("rdma_create_event_channel: %s", strerror(errno));
	return channel;
}

struct rdma_cm_id *
event_take_status(
	struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (!await_readable(channel->fd))
		fail_msg("no event %s", rdma_event_str(type));
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	assert_int_equal(event->status, status);
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

struct rdma_cm_id *
event_take(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	return event_take_status(channel, type, 0);
}

struct rdma_cm_id *
id_new(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
	return id;
}

struct rdma_cm_id *
listener_new(struct rdma_event_channel *channel, const char *addr, uint16_t port)
{
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)addr_of(addr, port)), 0);
	assert_int_equal(rdma_listen(id, 4), 0);
	return id;
}

int
bind_errno(struct rdma_event_channel *channel, const char *addr, uint16_t port)
{
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);
	int err;

	errno = 0;
	err = rdma_bind_addr(id, (struct sockaddr *)addr_of(addr, port)) == 0 ? 0 : errno;
	assert_int_equal(rdma_destroy_id(id), 0);
	return err;
}

static void
receive_post(struct end *end)
{
	struct ibv_sge sge = {.addr = (uintptr_t)end->text,
		.length = sizeof(end->text),
		.lkey = end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(end->id->qp, &wr, &bad), 0);
}

void
end_prepare(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	*end = (struct end){.id = id};
	assert_non_null(id->verbs);
	end->pd = ibv_alloc_pd(id->verbs);
	end->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	end->mr =
		ibv_reg_mr(end->pd, end->text, sizeof(end->text), IBV_ACCESS_LOCAL_WRITE);
	assert_true(end->pd != NULL && end->cq != NULL && end->mr != NULL);
	attr.send_cq = attr.recv_cq = end->cq;
	assert_int_equal(rdma_create_qp(id, end->pd, &attr), 0);
	receive_post(end);
}

void
end_free(struct end *end)
{
	rdma_destroy_qp(end->id);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	assert_int_equal(rdma_destroy_id(end->id), 0);
}

struct rdma_cm_id *
id_routed(struct rdma_event_channel *channel, enum rdma_port_space ps, const char *from,
	const char *to, uint16_t port)
{
	struct rdma_cm_id *id = id_new(channel, ps);
	struct sockaddr *source =
		from != NULL ? (struct sockaddr *)addr_of(from, 0) : NULL;

	assert_int_equal(
		rdma_resolve_addr(id, source, (struct sockaddr *)addr_of(to, port), 2000),
		0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 2000), 0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	return id;
}

void
ends_connect(struct rdma_event_channel *channel, const char *from, const char *to,
	uint16_t port, struct end *active, struct end *passive)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id = id_routed(channel, RDMA_PS_TCP, from, to, port);

	end_prepare(active, id);
	assert_int_equal(rdma_connect(id, &param), 0);
	end_prepare(passive, event_take(channel, RDMA_CM_EVENT_CONNECT_REQUEST));
	assert_int_equal(rdma_accept(passive->id, &param), 0);
	/* of the active end, when the REP comes, and then of the passive end */
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ESTABLISHED), id);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_ESTABLISHED), passive->id);
}

static void
completion_wait(struct end *end, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	await(ibv_poll_cq(end->cq, 1, &wc) != 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
}

void
ends_talk(struct end *from, struct end *to, const char *text)
{
	char copy[64];
	struct ibv_sge sge = {.addr = (uintptr_t)copy, .length = sizeof(copy)};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(from->id->qp, &attr, IBV_QP_CAP, &init), 0);
	snprintf(copy, sizeof(copy), "%s", text);
	if (init.cap.max_inline_data < sizeof(copy)) {
		snprintf(from->text, sizeof(from->text), "%s", text);
		sge.addr = (uintptr_t)from->text;
		sge.lkey = from->mr->lkey;
		wr.send_flags = IBV_SEND_SIGNALED;
	}
	memset(to->text, 0, sizeof(to->text));
	assert_int_equal(ibv_post_send(from->id->qp, &wr, &bad), 0);
	completion_wait(to, IBV_WC_RECV);
	completion_wait(from, IBV_WC_SEND);
	assert_string_equal(to->text, text);
	receive_post(to);
}

void
ends_disconnect(
	struct rdma_event_channel *channel, struct end *active, struct end *passive)
{
	assert_int_equal(rdma_disconnect(active->id), 0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_DISCONNECTED), passive->id);
	assert_int_equal(rdma_disconnect(passive->id), 0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_DISCONNECTED), active->id);
	end_free(active);
	end_free(passive);
}

void
all_close(struct rdma_event_channel *channel, struct rdma_cm_id *listener)
{
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
	ports_close();
}

/* Commands of /dev/infiniband/rdma_cm, as <rdma/rdma_user_cm.h> defines them. It cannot be
 * included together with <rdma/rdma_cma.h>. */
enum { CREATE_ID = 0, BIND_IP = 2, LISTEN = 7, GET_EVENT = 12 };

struct command {
	uint32_t number;
	uint16_t in, out;
	union {
		struct {
			uint64_t uid, response;
			uint16_t ps;
			uint8_t qp_type, reserved[5];
		} create;
		struct {
			uint64_t response;
			struct sockaddr_in6 addr;
			uint32_t id;
		} bind;
		struct {
			uint32_t id, backlog;
		} listen;
		struct {
			uint64_t response;
		} get_event;
	};
};

static void
command_write(int fd, const struct command *command)
{
	size_t len = offsetof(struct command, create) + command->in;

	assert_int_equal(write(fd, command, len), len);
}

int
raw_listener(uint16_t port, unsigned backlog)
{
	struct command command = {.number = CREATE_ID};
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	uint32_t id = 0;

	assert_true(fd >= 0);
	command.in = sizeof(command.create);
	command.out = sizeof(id);
	command.create.response = (uintptr_t)&id;
	command.create.ps = RDMA_PS_TCP;
	command_write(fd, &command);
	command = (struct command){.number = BIND_IP, .in = sizeof(command.bind)};
	memcpy(&command.bind.addr, addr_of("0.0.0.0", port), sizeof(command.bind.addr));
	command.bind.id = id;
	command_write(fd, &command);
	command = (struct command){.number = LISTEN, .in = sizeof(command.listen)};
	command.listen.id = id;
	command.listen.backlog = backlog;
	command_write(fd, &command);
	return fd;
}

void
raw_request_take(int fd)
{
	struct {
		uint64_t uid;
		uint32_t id, event, status, rest[80];
	} event = {.event = UINT32_MAX};
	struct command command = {.number = GET_EVENT, .in = sizeof(command.get_event)};

	command.out = sizeof(event);
	command.get_event.response = (uintptr_t)&event;
	assert_true(await_readable(fd));
	command_write(fd, &command);
	assert_int_equal(event.event, RDMA_CM_EVENT_CONNECT_REQUEST);
}
