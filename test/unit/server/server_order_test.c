/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a client's packets and of the ends of its connections: the peer gets the packets
 * first. No pass of the switch runs in between. */
#include "server_rdmacm_fixture.h"
#include "wire/build.h"

#define PORT 7471
#define PAYLOAD 64

/* A process with a QP and an id of RDMA-CM. */
struct end {
	struct fixture_client verbs;
	struct ring_prod tx;
	struct ring_cons rx;
	int fd, channel_fd;
	uint32_t qpn, channel, id;
};

struct connection {
	struct server_fixture b;
	struct end a, c; /* a ends the connection */
};

static void
end_call(struct connection *n, struct end *e, struct sw_request *req)
{
	struct sw_reply reply;

	assert_true(client_call(&n->b, e->verbs.fd, req, &reply, NULL));
	assert_int_equal(reply.error, 0);
	if (req->type == SW_QPN_TAKE)
		e->qpn = reply.qpn;
}

static int
end_command(struct connection *n, struct end *e, uint32_t cmd, const void *in,
	uint32_t len, struct sw_cm_reply *reply)
{
	assert_true(cm_command(&n->b, e->fd, e->channel, cmd, in, len, reply));
	return reply->error;
}

/* Fetches an event. Returns its type. */
static int
event_fetch(struct connection *n, struct end *e, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event get = {0};
	struct sw_cm_reply reply;

	assert_int_equal(
		end_command(n, e, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), &reply),
		0);
	memcpy(event, reply.bytes, sizeof(*event));
	return (int)event->event;
}

/* The ends are two processes. */
static void
end_open(struct connection *n, struct end *e, uint8_t process)
{
	struct sw_request take = {.type = SW_QPN_TAKE};

	fixture_process(process);
	assert_int_equal(client_attach(&n->b, &e->verbs), 0);
	region_client_rings(&e->verbs.region, &e->tx, &e->rx);
	end_call(n, e, &take);
	e->fd = client_connect(&n->b);
	e->channel = channel_open(&n->b, e->fd, &e->channel_fd);
	e->id = id_make(&n->b, e->fd, e->channel);
}

static void
peer_set(struct connection *n, struct end *e, uint32_t dest_qpn)
{
	struct sw_request req = {
		.type = SW_PEER_SET, .qpn = e->qpn, .dest_qpn = dest_qpn};

	assert_int_equal(gid_parse("192.0.2.1", req.sgid, NULL), 0);
	memcpy(req.dgid, req.sgid, sizeof(req.dgid));
	end_call(n, e, &req);
}

static void
ids_connect(struct connection *n)
{
	struct rdma_ucm_connect connect = {
		.id = n->a.id, .conn_param = {.valid = 1, .qp_num = n->a.qpn}};
	struct rdma_ucm_accept accept = {.conn_param = {.valid = 1, .qp_num = n->c.qpn}};
	struct rdma_ucm_accept confirm = {.id = n->a.id};
	struct rdma_ucm_resolve_route route = {.id = n->a.id};
	struct rdma_ucm_listen listen = {.id = n->c.id, .backlog = 1};
	struct rdma_ucm_event_resp event;
	struct sw_cm_reply reply;

	assert_int_equal(bind_any(&n->b, n->c.fd, n->c.channel, n->c.id, PORT), 0);
	assert_int_equal(end_command(n, &n->c, RDMA_USER_CM_CMD_LISTEN, &listen,
				 sizeof(listen), &reply),
		0);
	assert_int_equal(
		resolve_loopback(&n->b, n->a.fd, n->a.channel, n->a.id, &reply), 0);
	assert_int_equal(end_command(n, &n->a, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route,
				 sizeof(route), &reply),
		0);
	(void)event_fetch(n, &n->a, &event);
	(void)event_fetch(n, &n->a, &event);
	assert_int_equal(end_command(n, &n->a, RDMA_USER_CM_CMD_CONNECT, &connect,
				 sizeof(connect), &reply),
		0);
	assert_int_equal(event_fetch(n, &n->c, &event), UCM_EVENT_CONNECT_REQUEST);
	accept.id = event.id;
	assert_int_equal(end_command(n, &n->c, RDMA_USER_CM_CMD_ACCEPT, &accept,
				 sizeof(accept), &reply),
		0);
	assert_int_equal(event_fetch(n, &n->a, &event), UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(end_command(n, &n->a, RDMA_USER_CM_CMD_ACCEPT, &confirm,
				 sizeof(confirm), &reply),
		0);
	assert_int_equal(event_fetch(n, &n->c, &event), UCM_EVENT_ESTABLISHED);
}

static void
connection_open(struct connection *n)
{
	memset(n, 0, sizeof(*n));
	fixture_open(&n->b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	end_open(n, &n->a, 1);
	end_open(n, &n->c, 2);
	peer_set(n, &n->a, n->c.qpn);
	peer_set(n, &n->c, n->a.qpn);
	ids_connect(n);
}

static void
end_close(struct connection *n, struct end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	if (e->channel_fd >= 0)
		close(e->channel_fd);
	client_detach(&n->b, &e->verbs);
}

static void
connection_close(struct connection *n)
{
	end_close(n, &n->a);
	end_close(n, &n->c);
	channels_serve(&n->b);
	daemon_handle_all(&n->b);
	fixture_close(&n->b);
}

/* a sends packets, which no pass takes. */
static void
packets_post(struct connection *n, unsigned count)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {.dest_qpn = n->c.qpn,
		.pkey = PKEY_DEFAULT,
		.opcode = OPCODE_RC_SEND_ONLY};
	struct ring_desc desc = {.qpn = n->a.qpn};
	struct pkt pkt = {.data = region_tx_buf(&n->a.verbs.region, 0),
		.room = (uint16_t)n->a.verbs.region.geom.buf_size};
	struct path_hdr hdr;

	assert_int_equal(gid_parse("192.0.2.1", addr.src_gid, NULL), 0);
	memcpy(addr.dst_gid, addr.src_gid, sizeof(addr.dst_gid));
	path_hdr_init(&hdr, &addr);
	(void)frame_begin(&hdr, &pkt, &bth, PAYLOAD);
	memset(frame_payload(&hdr, &pkt, bth.opcode), 0, PAYLOAD);
	frame_end(&hdr, &pkt, PAYLOAD);
	desc.len = pkt.len;
	for (unsigned i = 0; i < count; i++)
		ring_put(&n->a.tx, &desc);
	ring_publish(&n->a.tx);
}

/* Returns how many packets c is shown. */
static unsigned
packets_shown(struct connection *n)
{
	assert_true(ring_cons_refresh(&n->c.rx));
	return ring_count(&n->c.rx);
}

static bool
event_is_announced(const struct connection *n)
{
	uint32_t number;

	return recv(n->c.channel_fd, &number, 4, MSG_DONTWAIT) == 4;
}

/* c is shown the packets, and is asked to take them. */
static void
check_question(struct connection *n, unsigned packets)
{
	char byte;

	assert_int_equal(packets_shown(n), packets);
	assert_int_equal(n->c.verbs.region.daemon->take_requested, 1);
	assert_int_equal(
		recv(n->c.verbs.fds[SW_FD_CLIENT_WAKE], &byte, 1, MSG_DONTWAIT), 1);
	assert_false(event_is_announced(n));
}

/* c's event, which says that the connection has ended, comes when c has taken the packets. */
static void
check_order(struct connection *n, unsigned packets)
{
	struct sw_request taken = {.type = SW_TAKEN};
	struct rdma_ucm_event_resp event;

	check_question(n, packets);
	end_call(n, &n->c, &taken); /* of an earlier question */
	assert_false(event_is_announced(n));
	taken.qpn = 1;
	end_call(n, &n->c, &taken);
	assert_true(event_is_announced(n));
	assert_int_equal(event_fetch(n, &n->c, &event), UCM_EVENT_DISCONNECTED);
}

/* Reads the wake-ups of earlier events. */
static void
wakes_read(struct connection *n)
{
	uint32_t number;

	while (recv(n->c.channel_fd, &number, 4, MSG_DONTWAIT) == 4)
		;
}

TEST(disconnect_follows_the_packets)
{
	struct rdma_ucm_disconnect cmd = {0};
	struct sw_cm_reply reply;
	struct connection n;

	connection_open(&n);
	cmd.id = n.a.id;
	packets_post(&n, 40);
	wakes_read(&n);
	assert_int_equal(packets_shown(&n), 0);
	assert_int_equal(end_command(&n, &n.a, RDMA_USER_CM_CMD_DISCONNECT, &cmd,
				 sizeof(cmd), &reply),
		0);
	check_order(&n, 40);
	connection_close(&n);
}

TEST(destruction_of_the_id_follows_the_packets)
{
	struct rdma_ucm_destroy_id cmd = {0};
	struct sw_cm_reply reply;
	struct connection n;

	connection_open(&n);
	cmd.id = n.a.id;
	packets_post(&n, 1);
	wakes_read(&n);
	assert_int_equal(end_command(&n, &n.a, RDMA_USER_CM_CMD_DESTROY_ID, &cmd,
				 sizeof(cmd), &reply),
		0);
	check_order(&n, 1);
	connection_close(&n);
}

TEST(end_of_the_channel_follows_the_packets)
{
	struct connection n;

	connection_open(&n);
	packets_post(&n, 1);
	wakes_read(&n);
	close(n.a.channel_fd);
	n.a.channel_fd = -1;
	channels_serve(&n.b);
	rdmacm_timer(n.b.d);
	check_order(&n, 1);
	connection_close(&n);
}

/* The process ends: the connection of RDMA-CM is found closed before that of its verbs. */
TEST(end_of_the_process_follows_the_packets)
{
	struct connection n;

	connection_open(&n);
	packets_post(&n, 1);
	wakes_read(&n);
	close(n.a.fd);
	n.a.fd = -1;
	daemon_handle_all(&n.b);
	check_order(&n, 1);
	connection_close(&n);
}

/* The receiver has no room: the packets that do not fit stay in a's ring. c reads what it has, and
 * gets the others. */
TEST(packets_without_room_are_kept)
{
	struct rdma_ucm_disconnect cmd = {0};
	struct sw_cm_reply reply;
	struct connection n;
	uint32_t slots;

	connection_open(&n);
	slots = n.c.verbs.region.geom.rx_slots;
	cmd.id = n.a.id;
	packets_post(&n, slots - 1);
	sw_run(n.b.d->sw, n.b.d->sw->now);
	sw_run(n.b.d->sw, n.b.d->sw->now);
	assert_int_equal(packets_shown(&n), slots - 1);
	assert_true(ring_prod_refresh(&n.a.tx));
	packets_post(&n, 3);
	wakes_read(&n);
	assert_int_equal(end_command(&n, &n.a, RDMA_USER_CM_CMD_DISCONNECT, &cmd,
				 sizeof(cmd), &reply),
		0);
	check_order(&n, slots);
	ring_release(&n.c.rx, slots);
	sw_run(n.b.d->sw, n.b.d->sw->now);
	assert_int_equal(packets_shown(&n), 2);
	connection_close(&n);
}

/* The process has ended as a client, and has RDMA-CM still: nothing is waited for. */
TEST(client_that_ends_is_not_waited_for)
{
	struct rdma_ucm_disconnect cmd = {0};
	struct rdma_ucm_event_resp event;
	struct sw_cm_reply reply;
	struct connection n;

	connection_open(&n);
	cmd.id = n.a.id;
	packets_post(&n, 1);
	wakes_read(&n);
	assert_int_equal(end_command(&n, &n.a, RDMA_USER_CM_CMD_DISCONNECT, &cmd,
				 sizeof(cmd), &reply),
		0);
	check_question(&n, 1);
	client_detach(&n.b, &n.c.verbs);
	assert_true(event_is_announced(&n));
	assert_int_equal(event_fetch(&n, &n.c, &event), UCM_EVENT_DISCONNECTED);
	n.c.verbs.fd = -1;
	connection_close(&n);
}

/* The QPN of c's connection is another process's by now, which c must not wait for. */
TEST(foreign_client_is_not_waited_for)
{
	struct rdma_ucm_disconnect cmd = {0};
	struct rdma_ucm_event_resp event;
	struct sw_cm_reply reply;
	struct connection n;
	struct conn *client;

	connection_open(&n);
	cmd.id = n.a.id;
	client = qpns_find(&n.b.d->sw->qpns, n.c.qpn)->owner->owner;
	client->key[0] ^= 1;
	wakes_read(&n);
	assert_int_equal(end_command(&n, &n.a, RDMA_USER_CM_CMD_DISCONNECT, &cmd,
				 sizeof(cmd), &reply),
		0);
	assert_true(event_is_announced(&n));
	assert_int_equal(event_fetch(&n, &n.c, &event), UCM_EVENT_DISCONNECTED);
	assert_int_equal(n.c.verbs.region.daemon->take_requested, 0);
	connection_close(&n);
}
