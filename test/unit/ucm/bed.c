/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

struct bed bed;

static bool
owns_qpn(void *owner, uint32_t qpn)
{
	const struct bed_process *p = owner;

	return qpn >= p->base && qpn < p->base + 16;
}

static void
wake(void *owner, uint32_t number)
{
	struct bed_process *p = owner;

	assert_int_equal(number, p->woken + 1);
	p->woken = number;
}

static bool
send_away(void *arg, const struct mad *mad, const struct cm_path *path)
{
	struct bed *b = arg;

	b->sent = *mad;
	b->sent_path = *path;
	b->sent_count++;
	return true;
}

static void
process_open(struct bed_process *p, uint32_t base)
{
	p->base = base;
	assert_int_equal(ucm_session_create(bed.ucm, p, &p->session), 0);
	assert_int_equal(ucm_channel_open(p->session, p, &p->channel, &p->number), 0);
}

void
bed_open(bool ops_send)
{
	struct ucm_conf conf = {
		.path_mtu = 5,
		.limits = {.ids = BED_IDS, .channels = BED_CHANNELS},
		.ops = {.owns_qpn = owns_qpn, .wake = wake, .arg = &bed},
	};

	memset(&bed, 0, sizeof(bed));
	bed.now = SEC_NS;
	if (ops_send)
		conf.ops.send = send_away;
	assert_int_equal(gid_parse("192.0.2.1", conf.net.addr[0].gid, NULL), 0);
	assert_int_equal(gid_parse("198.51.100.1", conf.net.addr[1].gid, NULL), 0);
	assert_int_equal(gid_parse("2001:db8::1", conf.net.addr[2].gid, NULL), 0);
	assert_int_equal(gid_parse("fe80::1", conf.net.addr[3].gid, NULL), 0);
	conf.net.addr_count = 4;
	cm_conf_default(&conf.cm);
	conf.cm.ca_guid = UINT64_C(0x0200000000000001);
	conf.cm.max_conns = 64;
	assert_int_equal(ucm_create(&conf, bed.now, &bed.ucm), 0);
	process_open(&bed.server, BED_SERVER_QPN);
	process_open(&bed.client, BED_CLIENT_QPN);
}

void
bed_close(void)
{
	ucm_session_destroy(bed.client.session, bed.now);
	ucm_session_destroy(bed.server.session, bed.now);
	assert_int_equal(ucm_ids(bed.ucm), 0);
	/* Open connections end by their timers. */
	for (unsigned i = 0; cm_in_use(bed.ucm->cm) != 0; i++) {
		assert_true(i < 10000);
		bed.now = ucm_deadline(bed.ucm);
		assert_true(bed.now != TIME_NEVER);
		ucm_run(bed.ucm, bed.now);
	}
	ucm_destroy(bed.ucm);
}

int
bed_setup(void **state)
{
	(void)state;
	bed_open(false);
	return 0;
}

int
bed_teardown(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

int
bed_do(struct bed_process *p, uint32_t cmd, const void *in, size_t len, void *out)
{
	uint8_t reply[UCM_MAX];
	int rc = ucm_command(
		p->session, p->number, cmd, in, len, reply, &p->result, bed.now);

	if (out != NULL)
		memcpy(out, reply, p->result.out_len);
	return rc;
}

uint32_t
bed_id(struct bed_process *p, uint16_t ps)
{
	struct rdma_ucm_create_id cmd = {.uid = 0x1000, .ps = ps};
	struct rdma_ucm_create_id_resp resp = {0};

	assert_int_equal(BED(p, CREATE_ID, &cmd, &resp), 0);
	assert_int_not_equal(resp.id, 0);
	return resp.id;
}

int
bed_destroy(struct bed_process *p, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id cmd = {.id = id};
	struct rdma_ucm_destroy_id_resp resp = {0};
	int rc = BED(p, DESTROY_ID, &cmd, &resp);

	if (events != NULL)
		*events = resp.events_reported;
	return rc;
}

struct sockaddr_in6
bed_sa(const char *text, uint16_t port)
{
	struct ucm_addr addr;
	uint8_t gid[16];

	assert_int_equal(gid_parse(text != NULL ? text : "0.0.0.0", gid, NULL), 0);
	ucm_addr_make(&addr, gid, port);
	return addr.sa;
}

int
bed_bind(struct bed_process *p, uint32_t id, const char *text, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.id = id, .addr = bed_sa(text, port)};

	return BED(p, BIND_IP, &cmd, NULL);
}

int
bed_listen(struct bed_process *p, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return BED(p, LISTEN, &cmd, NULL);
}

int
bed_resolve(struct bed_process *p, uint32_t id, const char *text, uint16_t port)
{
	struct rdma_ucm_resolve_ip cmd = {
		.id = id, .timeout_ms = 2000, .dst_addr = bed_sa(text, port)};

	return BED(p, RESOLVE_IP, &cmd, NULL);
}

int
bed_route(struct bed_process *p, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = {.id = id, .timeout_ms = 2000};

	return BED(p, RESOLVE_ROUTE, &cmd, NULL);
}

int
bed_connect(struct bed_process *p, uint32_t id, uint32_t qpn, const char *private)
{
	struct rdma_ucm_connect cmd = {.id = id,
		.conn_param = {.qp_num = qpn,
			.responder_resources = 3,
			.initiator_depth = 2,
			.retry_count = 6,
			.rnr_retry_count = 5,
			.valid = 1,
			.private_data_len = (uint8_t)strlen(private)}};

	memcpy(cmd.conn_param.private_data, private, strlen(private));
	return BED(p, CONNECT, &cmd, NULL);
}

int
bed_accept(struct bed_process *p, uint32_t id, uint64_t uid, uint32_t qpn)
{
	struct rdma_ucm_accept cmd = {.id = id,
		.uid = uid,
		.conn_param = {.qp_num = qpn,
			.responder_resources = 2,
			.initiator_depth = 1,
			.rnr_retry_count = 7,
			.valid = qpn != 0}};

	return BED(p, ACCEPT, &cmd, NULL);
}

int
bed_disconnect(struct bed_process *p, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = {.id = id};

	return BED(p, DISCONNECT, &cmd, NULL);
}

struct rdma_ucm_event_resp
bed_event(struct bed_process *p, enum ucm_event_type type)
{
	struct rdma_ucm_get_event cmd = {0};
	struct rdma_ucm_event_resp resp = {0};

	assert_int_equal(BED(p, GET_EVENT, &cmd, &resp), 0);
	assert_int_equal(resp.event, type);
	return resp;
}

void
bed_hold_end(void)
{
	bed.now += UCM_DEFER_SHORT_NS;
	ucm_run(bed.ucm, bed.now);
}

void
bed_no_event(struct bed_process *p)
{
	struct rdma_ucm_get_event cmd = {0};

	assert_int_equal(BED(p, GET_EVENT, &cmd, NULL), -EAGAIN);
	assert_false(p->result.pending);
}

struct ib_uverbs_qp_attr
bed_attr(struct bed_process *p, uint32_t id, uint32_t state)
{
	struct rdma_ucm_init_qp_attr cmd = {.id = id, .qp_state = state};
	struct ib_uverbs_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	assert_int_equal(BED(p, INIT_QP_ATTR, &cmd, &attr), 0);
	assert_int_equal(attr.qp_state, state);
	return attr;
}

uint32_t
bed_routed(uint16_t ps)
{
	uint32_t id = bed_id(&bed.client, ps);

	assert_int_equal(bed_resolve(&bed.client, id, "192.0.2.1", BED_PORT), 0);
	bed_event(&bed.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(bed_route(&bed.client, id), 0);
	bed_event(&bed.client, UCM_EVENT_ROUTE_RESOLVED);
	return id;
}

uint32_t
bed_listener(uint16_t ps)
{
	uint32_t id = bed_id(&bed.server, ps);

	assert_int_equal(bed_bind(&bed.server, id, NULL, BED_PORT), 0);
	assert_int_equal(bed_listen(&bed.server, id, 4), 0);
	return id;
}

struct bed_pair
bed_requested(uint16_t ps)
{
	struct bed_pair pair = {.listener = bed_listener(ps)};

	pair.active = bed_routed(ps);
	assert_int_equal(
		bed_connect(&bed.client, pair.active, BED_CLIENT_QPN, "hello"), 0);
	pair.passive = bed_event(&bed.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_not_equal(pair.passive, pair.listener);
	return pair;
}

struct bed_pair
bed_connected(void)
{
	struct bed_pair pair = bed_requested(RDMA_PS_TCP);

	assert_int_equal(
		bed_accept(&bed.server, pair.passive, 0x2000, BED_SERVER_QPN), 0);
	bed_event(&bed.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(bed_accept(&bed.client, pair.active, 0, 0), 0);
	assert_int_equal(bed_event(&bed.server, UCM_EVENT_ESTABLISHED).uid, 0x2000);
	return pair;
}
