/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucm_fixture.h"

struct ucm_fixture ctx;

static bool
owns_qpn(void *owner, uint32_t qpn)
{
	const struct test_process *p = owner;

	return qpn >= p->base && qpn < p->base + 16;
}

static void
wake(void *owner, uint32_t number)
{
	struct test_process *p = owner;

	assert_true(number > p->woken);
	p->woken = number;
	p->wakes++;
}

static bool
send_remote(void *arg, const struct mad *mad, const struct cm_path *path)
{
	struct ucm_fixture *b = arg;

	b->sent = *mad;
	b->sent_path = *path;
	b->sent_count++;
	return true;
}

/* Before the event: no process is woken for it yet. */
static struct ucm_taker *
qp_ended(void *owner, uint32_t qpn, bool asks)
{
	bool takes = ctx.takes && asks;

	assert_true(owns_qpn(owner, qpn));
	ctx.ended[ctx.ended_count % 2] = qpn;
	ctx.ended_woken[ctx.ended_count++ % 2] = ctx.server.woken;
	ctx.taker.asked += takes;
	return takes ? &ctx.taker : NULL;
}

static void
process_open(struct test_process *p, uint32_t base)
{
	p->base = base;
	assert_int_equal(ucm_session_create(ctx.ucm, p, &p->session), 0);
	assert_int_equal(ucm_channel_open(p->session, p, &p->channel, &p->number), 0);
}

void
fixture_open(bool ops_send)
{
	fixture_open_sized(ops_send, 64);
}

void
fixture_open_sized(bool ops_send, uint32_t max_conns)
{
	struct ucm_device_conf device = {.guid = UINT64_C(0x0200000000000001),
		.index = UCM_NO_INDEX,
		.path_mtu = 5};
	struct ucm_conf conf = {
		.limits = {.ids = MAX_IDS, .channels = MAX_CHANNELS},
		.ops = {.owns_qpn = owns_qpn,
			.wake = wake,
			.qp_ended = qp_ended,
			.arg = &ctx},
	};

	memset(&ctx, 0, sizeof(ctx));
	ctx.now = NS_PER_SEC;
	if (ops_send)
		conf.ops.send = send_remote;
	assert_int_equal(gid_parse("192.0.2.1", device.net.addr[0].gid, NULL), 0);
	assert_int_equal(gid_parse("198.51.100.1", device.net.addr[1].gid, NULL), 0);
	assert_int_equal(gid_parse("2001:db8::1", device.net.addr[2].gid, NULL), 0);
	assert_int_equal(gid_parse("fe80::1", device.net.addr[3].gid, NULL), 0);
	device.net.addr_count = 4;
	cm_conf_default(&conf.cm);
	conf.cm.ca_guid = device.guid;
	conf.cm.max_conns = max_conns;
	assert_int_equal(ucm_create(&conf, ctx.now, &ctx.ucm), 0);
	assert_int_equal(ucm_device_add(ctx.ucm, &device, &ctx.device), 0);
	process_open(&ctx.server, SERVER_QPN);
	process_open(&ctx.client, CLIENT_QPN);
}

void
fixture_close(void)
{
	ucm_session_destroy(ctx.client.session, ctx.now);
	ucm_session_destroy(ctx.server.session, ctx.now);
	while (ucm_deadline(ctx.ucm) == 0)
		ucm_run(ctx.ucm, ctx.now);
	assert_int_equal(ucm_ids(ctx.ucm), 0);
	/* Open connections end by their timers. */
	for (unsigned i = 0; cm_in_use(ctx.ucm->cm) != 0; i++) {
		assert_true(i < 10000);
		ctx.now = ucm_deadline(ctx.ucm);
		assert_true(ctx.now != TIME_NEVER);
		ucm_run(ctx.ucm, ctx.now);
	}
	ucm_destroy(ctx.ucm);
}

int
ucm_setup(void **state)
{
	fixture_open(false);
	return 0;
}

int
ucm_teardown(void **state)
{
	fixture_close();
	return 0;
}

int
command_run(struct test_process *p, uint32_t cmd, const void *in, size_t len, void *out)
{
	uint8_t reply[UCM_MAX];
	int rc = ucm_command(
		p->session, p->number, cmd, in, len, reply, &p->result, ctx.now);

	if (out != NULL)
		memcpy(out, reply, p->result.out_len);
	return rc;
}

uint32_t
make_id(struct test_process *p, uint16_t ps)
{
	struct rdma_ucm_create_id cmd = {.uid = 0x1000, .ps = ps};
	struct rdma_ucm_create_id_resp resp = {0};

	assert_int_equal(COMMAND(p, CREATE_ID, &cmd, &resp), 0);
	assert_int_not_equal(resp.id, 0);
	return resp.id;
}

int
destroy_id(struct test_process *p, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id cmd = {.id = id};
	struct rdma_ucm_destroy_id_resp resp = {0};
	int rc = COMMAND(p, DESTROY_ID, &cmd, &resp);

	if (events != NULL)
		*events = resp.events_reported;
	return rc;
}

struct sockaddr_in6
sockaddr_of(const char *text, uint16_t port)
{
	struct ucm_addr addr;
	uint8_t gid[16];

	assert_int_equal(gid_parse(text != NULL ? text : "0.0.0.0", gid, NULL), 0);
	ucm_addr_make(&addr, gid, port);
	return addr.sa;
}

int
bind_id(struct test_process *p, uint32_t id, const char *text, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.id = id, .addr = sockaddr_of(text, port)};

	return COMMAND(p, BIND_IP, &cmd, NULL);
}

int
listen_id(struct test_process *p, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return COMMAND(p, LISTEN, &cmd, NULL);
}

int
resolve_addr(struct test_process *p, uint32_t id, const char *text, uint16_t port)
{
	struct rdma_ucm_resolve_ip cmd = {
		.id = id, .timeout_ms = 2000, .dst_addr = sockaddr_of(text, port)};

	return COMMAND(p, RESOLVE_IP, &cmd, NULL);
}

int
resolve_route(struct test_process *p, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = {.id = id, .timeout_ms = 2000};

	return COMMAND(p, RESOLVE_ROUTE, &cmd, NULL);
}

int
connect_id(struct test_process *p, uint32_t id, uint32_t qpn, const char *private)
{
	struct rdma_ucm_connect cmd = {.id = id,
		.conn_param = {.qp_num = qpn,
			.responder_resources = 3,
			.initiator_depth = 4,
			.retry_count = 6,
			.rnr_retry_count = 5,
			.valid = 1,
			.private_data_len = (uint8_t)strlen(private)}};

	memcpy(cmd.conn_param.private_data, private, strlen(private));
	return COMMAND(p, CONNECT, &cmd, NULL);
}

int
accept_id(struct test_process *p, uint32_t id, uint64_t uid, uint32_t qpn)
{
	struct rdma_ucm_accept cmd = {.id = id,
		.uid = uid,
		.conn_param = {.qp_num = qpn,
			.responder_resources = 2,
			.initiator_depth = 1,
			.rnr_retry_count = 7,
			.valid = qpn != 0}};

	return COMMAND(p, ACCEPT, &cmd, NULL);
}

int
disconnect_id(struct test_process *p, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = {.id = id};

	return COMMAND(p, DISCONNECT, &cmd, NULL);
}

struct rdma_ucm_event_resp
expect_event(struct test_process *p, enum ucm_event_type type)
{
	struct rdma_ucm_get_event cmd = {0};
	struct rdma_ucm_event_resp resp = {0};

	assert_int_equal(COMMAND(p, GET_EVENT, &cmd, &resp), 0);
	assert_int_equal(resp.event, type);
	return resp;
}

void
deferral_end(void)
{
	ctx.now += UCM_DEFER_SHORT_NS;
	ucm_run(ctx.ucm, ctx.now);
}

void
expect_no_event(struct test_process *p)
{
	struct rdma_ucm_get_event cmd = {0};

	assert_int_equal(COMMAND(p, GET_EVENT, &cmd, NULL), -EAGAIN);
	assert_false(p->result.pending);
}

struct ib_uverbs_qp_attr
qp_attr_of(struct test_process *p, uint32_t id, uint32_t state)
{
	struct rdma_ucm_init_qp_attr cmd = {.id = id, .qp_state = state};
	struct ib_uverbs_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	assert_int_equal(COMMAND(p, INIT_QP_ATTR, &cmd, &attr), 0);
	assert_int_equal(attr.qp_state, state);
	return attr;
}

uint32_t
make_routed_id(uint16_t ps)
{
	uint32_t id = make_id(&ctx.client, ps);

	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.1", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	return id;
}

uint32_t
make_listener(uint16_t ps)
{
	uint32_t id = make_id(&ctx.server, ps);

	assert_int_equal(bind_id(&ctx.server, id, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ctx.server, id, 4), 0);
	return id;
}

struct id_pair
pair_requested(uint16_t ps)
{
	struct id_pair pair = {.listener = make_listener(ps)};

	pair.active = make_routed_id(ps);
	assert_int_equal(connect_id(&ctx.client, pair.active, CLIENT_QPN, "hello"), 0);
	pair.passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_not_equal(pair.passive, pair.listener);
	return pair;
}

struct id_pair
pair_connected(void)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP);

	assert_int_equal(accept_id(&ctx.server, pair.passive, 0x2000, SERVER_QPN), 0);
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(accept_id(&ctx.client, pair.active, 0, 0), 0);
	assert_int_equal(expect_event(&ctx.server, UCM_EVENT_ESTABLISHED).uid, 0x2000);
	return pair;
}

void
connect_resolving(struct test_process *p, uint32_t id, uint32_t qpn)
{
	expect_event(p, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(p, id), 0);
	expect_event(p, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_id(p, id, qpn, "x"), 0);
}
