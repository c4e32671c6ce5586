/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's switch with a hostile client, which changes its memory, frames and
 * requests at will, and two honest clients that talk to each other. Whatever the hostile
 * client does, the honest clients receive over their connection what they sent, in order,
 * and every other frame they receive names its true source. One of them is not connected for
 * some time now and then: what is sent to it then waits, or is dropped.
 */
#include "../unit/switch/switch_fixture.h"
#include "fuzz.h"

#define STEPS 300
#define PAYLOAD 64
#define HOSTILE 2
#define HOSTILE_QPNS 16384

struct honest {
	struct fixture_client *client;
	struct honest *peer;
	uint32_t sent, got; /* sequence numbers of the next messages */
	uint64_t received;
};

struct world {
	struct switch_fixture fixture;
	struct honest pair[2];
	bool waiting; /* the second one has no peer */
	/* a bit for each QPN that it ever had, of the first HOSTILE_QPNS */
	uint32_t hostile_qpns[HOSTILE_QPNS / 32];
};

static const char *const addresses[] = {
	"192.0.2.1", "192.0.2.9", "224.0.0.9", "fe80::1", "ff02::9", "192.0.2.1"};

static void
address_take(struct input *in, uint8_t gid[16])
{
	FUZZ_CHECK(gid_parse(addresses[take8(in) % RTE_DIM(addresses)], gid, NULL) == 0);
}

/* A QPN of any client, a special one, or an unassigned one. */
static uint32_t
qpn_take_any(struct input *in)
{
	uint8_t which = take8(in);

	switch (which >> 5) {
	case 0:
		return which & 1;
	case 1:
		return QPN_MULTICAST;
	case 2:
		return (uint32_t)take16(in) << 8 | which;
	default:
		return FIRST_QPN + which % QPN_COUNT;
	}
}

static uint16_t
honest_frame(const struct honest *h, uint32_t number, uint8_t *to)
{
	struct frame_spec f = {.opcode = OPCODE_RC_SEND_ONLY,
		.dest_qpn = h->peer->client->qpn,
		.psn = number & PSN_MASK,
		.payload = PAYLOAD};
	uint16_t len;

	FUZZ_CHECK(gid_parse(addresses[0], f.sgid, NULL) == 0);
	memcpy(f.dgid, f.sgid, 16);
	len = frame_spec_build(to, &f);
	memcpy(to + len - ICRC_LEN - PAYLOAD, &number, sizeof(number));
	return len;
}

static void
honest_send(struct honest *h)
{
	struct fixture_client *c = h->client;
	uint32_t buf = h->sent % CLIENT_SLOTS;

	FUZZ_CHECK(ring_prod_refresh(&c->tx));
	if (ring_room(&c->tx) == 0)
		return;
	client_post(
		c, buf, c->qpn, honest_frame(h, h->sent, region_tx_buf(&c->region, buf)));
	h->sent++;
}

/* Returns whether frames to the client may be missing. */
static bool
may_have_lost(const struct honest *h)
{
	const struct sw_stats *from = &h->peer->client->client->stats;

	return h->client->client->stats.rx_full + from->drop_not_ready +
		       from->drop_not_connected + from->drop_peer !=
	       0;
}

/* Checks a frame of the connection: it is the next one that the peer sent, or a later one
 * if some were dropped. */
static void
honest_check(struct honest *h, const uint8_t *got, uint16_t len)
{
	uint8_t want[CLIENT_BUF_SIZE];
	uint32_t number;

	memcpy(&number, got + len - ICRC_LEN - PAYLOAD, sizeof(number));
	FUZZ_CHECK(len == honest_frame(h->peer, number, want));
	FUZZ_CHECK(memcmp(got + 12, want + 12, len - 12u) == 0);
	FUZZ_CHECK(number - h->got < h->peer->sent - h->got);
	FUZZ_CHECK(number == h->got || may_have_lost(h));
	h->got = number + 1;
	h->received++;
}

static void
datagram_check(const struct world *w, const struct pkt_view *view, const uint8_t *got)
{
	uint32_t from = be24_get(view_deth(view)->src_qpn) - FIRST_QPN;
	uint8_t ours[16];

	FUZZ_CHECK(from < HOSTILE_QPNS &&
		   (w->hostile_qpns[from / 32] >> from % 32 & 1) != 0);
	FUZZ_CHECK(view->ip_version == 4);
	FUZZ_CHECK(gid_parse(addresses[0], ours, NULL) == 0);
	FUZZ_CHECK(memcmp(got + 14 + 12, ours + 12, 4) == 0);
}

static void
honest_receive(const struct world *w, struct honest *h)
{
	struct fixture_client *c = h->client;

	FUZZ_CHECK(ring_cons_refresh(&c->rx));
	for (; ring_count(&c->rx) != 0; ring_release(&c->rx, 1)) {
		struct ring_desc desc = ring_peek(&c->rx, 0);
		uint8_t *got = region_rx_buf(&c->region, c->rx.cons & c->rx.mask);
		struct pkt pkt = {.data = got,
			.len = desc.len,
			.room = desc.len,
			.flags = PKT_RX_IPV4_CKSUM_OK};
		struct pkt_view view;

		FUZZ_CHECK(desc.len <= CLIENT_BUF_SIZE);
		FUZZ_CHECK(memcmp(got, w->fixture.sw->conf.net.mac, 6) == 0 &&
			   memcmp(got + 6, w->fixture.sw->conf.net.mac, 6) == 0);
		FUZZ_CHECK(pkt_parse_headers(&pkt, 0, &view) == DROP_none);
		if (view.op->service == SERVICE_UD) {
			datagram_check(w, &view, got);
		} else {
			FUZZ_CHECK(view.dest_qpn == c->qpn);
			honest_check(h, got, desc.len);
		}
	}
}

/* The hostile client */

static void
hostile_post(struct fixture_client *c, uint32_t buf, uint32_t qpn, uint16_t len)
{
	struct ring_desc desc = {.buf = buf, .qpn = qpn, .len = len, .flags = len};

	ring_put(&c->tx, &desc);
	ring_publish(&c->tx);
}

static void
hostile_frame(struct world *w, struct input *in)
{
	static const uint8_t opcodes[] = {OPCODE_RC_SEND_ONLY, OPCODE_RC_ACKNOWLEDGE,
		OPCODE_RC_WRITE_FIRST, OPCODE_UD_SEND_ONLY, OPCODE_UD_SEND_ONLY_IMM,
		OPCODE_CNP};
	struct fixture_client *c = &w->fixture.c[HOSTILE];
	unsigned how = take8(in);
	uint32_t buf = take8(in) % (CLIENT_BUFS + 1), qpn = qpn_take_any(in);
	uint8_t *frame = region_tx_buf(&c->region, buf % CLIENT_BUFS);
	struct frame_spec f = {.opcode = opcodes[take8(in) % sizeof(opcodes)],
		.dest_qpn = qpn_take_any(in),
		.deth_qpn = how & 1 ? qpn : qpn_take_any(in),
		.payload = take8(in)};
	uint16_t len;

	address_take(in, f.sgid);
	address_take(in, f.dgid);
	len = frame_spec_build(frame, &f);
	for (unsigned i = how >> 5; i != 0; i--) {
		unsigned at = take8(in) % len;

		frame[at] ^= take8(in);
	}
	if (how & 2)
		frame_fix(frame, len, FIX_LENGTHS | FIX_CHECKSUMS);
	if (how & 4)
		len = take16(in);
	if (ring_prod_refresh(&c->tx) && (ring_room(&c->tx) != 0 || how & 8))
		hostile_post(c, buf, qpn, len);
}

static void
hostile_overwrite(struct world *w, struct input *in)
{
	struct fixture_client *c = &w->fixture.c[HOSTILE];
	size_t size = region_client_size(&c->client->region.geom);
	/* The indices come first. */
	size_t at =
		take16(in) %
		(take8(in) & 1 ? size : offsetof(struct region_client, latencies) + 512);
	size_t len = take8(in) % 16;
	const uint8_t *bytes = take_bytes(in, &len);

	memcpy((uint8_t *)c->region.client + at, bytes, RTE_MIN(len, size - at));
}

static void
hostile_receive(struct fixture_client *c, unsigned n)
{
	if (ring_cons_refresh(&c->rx))
		ring_release(&c->rx, RTE_MIN(n, ring_count(&c->rx)));
}

static void
qpn_note(struct world *w, uint32_t qpn)
{
	uint32_t index = qpn - FIRST_QPN;

	FUZZ_CHECK(index < HOSTILE_QPNS);
	w->hostile_qpns[index / 32] |= 1u << index % 32;
}

static void
hostile_request(struct world *w, struct input *in)
{
	struct fixture_client *c = &w->fixture.c[HOSTILE];
	unsigned how = take8(in);
	struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = how % 16,
		.qpn = qpn_take_any(in),
		.dest_qpn = qpn_take_any(in)};
	struct sw_reply reply;
	size_t len = sizeof(req);

	address_take(in, req.sgid);
	address_take(in, req.dgid);
	if (how & 0x40)
		((uint8_t *)&req)[take8(in) % sizeof(req)] ^= take8(in);
	if (how & 0x80)
		len = take8(in) % sizeof(req);
	if (!sw_serve(w->fixture.sw, &w->fixture.device, how & 0x20 ? NULL : c->client,
		    &req, len, &reply))
		return;
	FUZZ_CHECK(reply.error >= 0 && reply.magic == SW_PROTO_MAGIC);
	if (reply.error == 0 && reply.type == SW_QPN_TAKE)
		qpn_note(w, reply.qpn);
}

static void
hostile_reconnect(struct world *w)
{
	client_detach(&w->fixture.c[HOSTILE]);
	client_attach(&w->fixture, &w->fixture.c[HOSTILE]);
	qpn_note(w, w->fixture.c[HOSTILE].qpn);
}

/* ---- */

/* Ends the registration of the second honest client's peer, or makes it anew. */
static void
honest_connect(struct world *w, bool connected)
{
	const struct honest *h = &w->pair[1];
	struct sw_request req = {.type = connected ? SW_PEER_SET : SW_PEER_CLEAR,
		.qpn = h->client->qpn,
		.dest_qpn = h->peer->client->qpn};
	struct sw_reply reply;

	address_take(&(struct input){NULL, 0}, req.sgid);
	memcpy(req.dgid, req.sgid, 16);
	client_request(&w->fixture, h->client, &req, &reply);
	FUZZ_CHECK(reply.error == 0);
	w->waiting = !connected;
}

static void
pass_run(struct world *w, uint64_t after_ns)
{
	w->fixture.now += after_ns;
	sw_run(w->fixture.sw, w->fixture.now);
	/* As the daemon: sleeps if allowed, and disconnects a client whose rings are
	 * corrupt. */
	if (sw_sleep(w->fixture.sw))
		sw_awake(w->fixture.sw);
	else if (w->fixture.c[HOSTILE].client->corrupt)
		hostile_reconnect(w);
}

static void
step_run(struct world *w, struct input *in)
{
	uint8_t op = take8(in);

	switch (op & 7) {
	case 0:
	case 1:
		hostile_frame(w, in);
		break;
	case 2:
		hostile_overwrite(w, in);
		break;
	case 3:
		hostile_request(w, in);
		break;
	case 4:
		honest_send(&w->pair[op >> 3 & 1]);
		break;
	case 5:
		honest_receive(w, &w->pair[op >> 3 & 1]);
		break;
	case 6:
		pass_run(w, (uint64_t)take8(in) << (op >> 3));
		break;
	default:
		if (op == 0xFF)
			hostile_reconnect(w);
		else if (op == 0xF7)
			honest_connect(w, w->waiting);
		else
			hostile_receive(&w->fixture.c[HOSTILE], op >> 3);
		break;
	}
}

/* Checks that no frame stays queued, and that all frames not dropped by a ring have
 * arrived. */
static void
final_check(struct world *w)
{
	honest_connect(w, true);
	for (unsigned i = 0; i < 4 * CLIENT_SLOTS; i++) {
		pass_run(w, SW_BACKPRESSURE_NS);
		for (unsigned k = 0; k < 2; k++)
			honest_receive(w, &w->pair[k]);
	}
	for (unsigned k = 0; k < 2; k++) {
		FUZZ_CHECK(may_have_lost(&w->pair[k]) ||
			   w->pair[k].received == w->pair[k].peer->sent);
		FUZZ_CHECK(!w->pair[k].client->client->corrupt);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct world w = {.hostile_qpns = {0}};

	fixture_open_users(&w.fixture, (const uint32_t[CLIENTS]){[HOSTILE] = 1});
	for (unsigned k = 0; k < 2; k++)
		w.pair[k] = (struct honest){
			.client = &w.fixture.c[k], .peer = &w.pair[1 - k]};
	qpn_note(&w, w.fixture.c[HOSTILE].qpn);
	for (unsigned i = 0; i < STEPS && in.left != 0; i++)
		step_run(&w, &in);
	final_check(&w);
	fixture_close(&w.fixture);
	return 0;
}
