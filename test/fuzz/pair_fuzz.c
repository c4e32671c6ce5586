/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client with the pairs of two partners. The hostile one writes anything into its part between
 * the passes of the client: stamps, lengths, kinds, bytes, indices. Whatever it does, the client takes
 * from it only packets for QPs that are connected with it, loses no buffer, and takes from the honest
 * partner all packets, in order. The headers that it has checked do not change, and the honest
 * partner gets a slot back only when its packet was released.
 */
#include "engine/engine_state.h"
#include "fuzz.h"
#include "shm/shm_answer.h"
#include "shm/shm_tx_ring.h"
#include "wire/hdr.h"
#include "wire/pkt_parse.h"

#define STEPS 400
#define SLOTS 8
#define BUF_SIZE 1280
#define QPNS 64
#define BURST 8
#define LEN 70 /* of packets that the honest partner and the client send */
#define LONG_LEN (PAIR_LONG + 16) /* of every third one of the honest partner */

enum {
	QP_HOSTILE = 17, /* connected with the hostile partner */
	QP_HOSTILE_2,
	QP_HONEST,
	QP_CHANGES, /* registers the hostile partner now and then */
	QP_NONE,
	QP_END,
};
enum { HOSTILE = 2, HONEST };

struct world {
	struct input in;
	struct shm *shm;
	struct port_stats stats;
	uint64_t now;
	struct pair_part *hostile, *honest; /* the parts of the partners */
	uint32_t honest_sent, honest_taken;
	struct pkt held[PAIR_RX_BUFFERS];
	uint32_t held_number[PAIR_RX_BUFFERS]; /* of those of the honest partner */
	uint32_t held_qpn[PAIR_RX_BUFFERS];
	unsigned held_count;
	struct answer_wait wait;
};

static void *
zeros(size_t align, size_t size)
{
	void *mem = aligned_alloc(align, RTE_ALIGN_CEIL(size, align));

	FUZZ_CHECK(mem != NULL);
	return memset(mem, 0, size);
}

static void
qp_connect(struct world *w, uint32_t qpn, uint32_t partner, bool announce)
{
	w->shm->pairs.qps[qpn & (QPNS - 1)] = (struct pair_qp){.qpn = qpn,
		.partner = partner,
		.peer_qpn = qpn,
		.pair = (uint8_t)(partner == 0 ? 0 : partner - 1),
		.state = partner == 0 ? PAIR_QP_DAEMON : PAIR_QP_ACCEPTED,
		.announce = announce};
	w->shm->pairs.announce_due |= announce;
}

static struct pair_part *
pair_create(struct world *w, uint32_t partner)
{
	struct shm_pairs *p = &w->shm->pairs;
	size_t size = sizeof(struct pair_part) + SLOTS * p->slot_size;
	struct pair_part *peer = zeros(LINE_SIZE, size);

	peer->reads = 1;
	p->all[p->count++] = (struct shm_pair){.own = zeros(LINE_SIZE, size),
		.peer = peer,
		.wake_fd = -1,
		.lag_ns = PAIR_LAG_NS,
		.partner = partner,
		.full_cons = 0u - SLOTS / 2};
	return peer;
}

static void
world_open(struct world *w)
{
	struct region_geom geom = {.tx_slots = SLOTS,
		.rx_slots = SLOTS,
		.tx_bufs = SLOTS,
		.buf_size = BUF_SIZE};
	struct shm *shm = w->shm = zeros(LINE_SIZE, sizeof(*shm));
	struct shm_pairs *p = &shm->pairs;

	region_init(&shm->region, zeros(4096, region_client_size(&geom)),
		zeros(4096, region_daemon_size(&geom)), &geom);
	region_client_rings(&shm->region, &shm->tx, &shm->rx);
	shm->slot_buf = zeros(8, SLOTS * sizeof(*shm->slot_buf));
	shm->free = zeros(8, SLOTS * sizeof(*shm->free));
	shm->daemon_wake_fd = -1;
	shm->dev = zeros(LINE_SIZE, sizeof(*shm->dev));
	shm->dev->engines[0] = zeros(LINE_SIZE, sizeof(struct engine));
	shm->now = &w->now;
	shm->dev_stats = &w->stats;
	p->geom = pair_geom_of(&geom);
	p->slot_size = pair_slot_size(&p->geom);
	p->mask = QPNS - 1;
	p->qps = zeros(8, QPNS * sizeof(p->qps[0]));
	p->buffers = zeros(LINE_SIZE, (size_t)PAIR_RX_BUFFERS * BUF_SIZE);
	for (unsigned i = 0; i < PAIR_RX_BUFFERS; i++)
		p->free[p->free_count++] = (uint8_t)i;
	w->hostile = pair_create(w, HOSTILE);
	w->honest = pair_create(w, HONEST);
	qp_connect(w, QP_HOSTILE, HOSTILE, false);
	qp_connect(w, QP_HOSTILE_2, HOSTILE, true);
	qp_connect(w, QP_HONEST, HONEST, false);
	qp_connect(w, QP_CHANGES, HOSTILE, false);
	qp_connect(w, QP_NONE, 0, false);
	w->now = NS_PER_SEC;
}

static void
packet_fill(uint8_t *bytes, uint32_t len, uint32_t qpn, uint32_t number)
{
	memset(bytes, 0, len);
	bytes[12] = 0x08;
	bytes[14] = 0x45;
	bytes[23] = IPPROTO_UDP;
	bytes[36] = ROCE_UDP_PORT >> 8;
	bytes[37] = ROCE_UDP_PORT & 0xff;
	bytes[38] = (uint8_t)((len - 34) >> 8);
	bytes[39] = (uint8_t)(len - 34);
	bytes[49] = (uint8_t)qpn;
	memcpy(bytes + len - 4, &number, 4);
}

static uint16_t
honest_len(uint32_t number)
{
	return number % 3 == 0 ? LONG_LEN : LEN;
}

static struct pair_slot *
slot_of(const struct world *w, struct pair_part *part, uint32_t index)
{
	return (struct pair_slot *)(part->slots +
				    (index & (SLOTS - 1)) * w->shm->pairs.slot_size);
}

/* ---- The client ---- */

/* The DestQP of a packet over IPv4 or IPv6. */
static uint32_t
dest_qpn(const struct pkt *pkt)
{
	unsigned ip = pkt->data[12] == 0x86 ? 40 : 20;

	FUZZ_CHECK(pkt->len >= 14 + ip + 8 + sizeof(struct bth));
	return (uint32_t)pkt->data[14 + ip + 13] << 16 |
	       (uint32_t)pkt->data[14 + ip + 14] << 8 | pkt->data[14 + ip + 15];
}

/* Where the packet has its payload. */
static const uint8_t *
frame_of(const struct pkt *pkt)
{
	return pkt->flags & PKT_RX_HEADERS
		       ? ((const struct pkt_headers *)pkt->data)->frame
		       : pkt->data;
}

static void
honest_check(const struct pkt *pkt, uint32_t number)
{
	uint16_t len = honest_len(number);
	uint8_t want[LONG_LEN];

	packet_fill(want, len, QP_HONEST, number);
	FUZZ_CHECK(pkt->len == len && memcmp(pkt->data, want, LEN - 4) == 0 &&
		   memcmp(frame_of(pkt), want, len) == 0);
}

/* A long packet is as long as its UDP length says. */
static void
long_check(const struct pkt *pkt)
{
	unsigned ip = pkt->data[12] == 0x86 ? 40 : 20;
	const uint8_t *udp = pkt->data + 14 + ip;

	if (pkt->flags & PKT_RX_HEADERS)
		FUZZ_CHECK(pkt->len >= PAIR_LONG &&
			   14 + ip + ((unsigned)udp[4] << 8 | udp[5]) == pkt->len);
	else
		FUZZ_CHECK(pkt->len < PAIR_LONG);
}

static void
packet_check(struct world *w, const struct pkt *pkt)
{
	uint32_t qpn = dest_qpn(pkt);

	FUZZ_CHECK(pkt->len <= BUF_SIZE);
	long_check(pkt);
	if (qpn == QP_HONEST) {
		honest_check(pkt, w->honest_taken++);
		return;
	}
	FUZZ_CHECK(qpn == QP_HOSTILE || qpn == QP_HOSTILE_2 || qpn == QP_CHANGES);
	FUZZ_CHECK(w->shm->pairs.qps[qpn].partner == HOSTILE &&
		   !w->shm->pairs.qps[qpn].registering);
}

static void
held_release(struct world *w, unsigned n)
{
	for (; n != 0 && w->held_count != 0; n--) {
		const struct pkt *pkt = &w->held[--w->held_count];

		FUZZ_CHECK(dest_qpn(pkt) == w->held_qpn[w->held_count]);
		long_check(pkt);
		if (w->held_qpn[w->held_count] == QP_HONEST)
			honest_check(pkt, w->held_number[w->held_count]);
		pairs_rx_release(&w->shm->pairs, (uint8_t)(uintptr_t)pkt->owner);
	}
}

static unsigned
client_pass(struct world *w, unsigned n)
{
	struct pkt pkts[BURST];
	unsigned got;

	pairs_peek(w->shm);
	got = pairs_rx(w->shm, pkts, n, UINT64_C(1) << 33);
	FUZZ_CHECK(got <= n);
	for (unsigned i = 0; i < got; i++) {
		w->held_number[w->held_count] = w->honest_taken;
		w->held_qpn[w->held_count] = dest_qpn(&pkts[i]);
		packet_check(w, &pkts[i]);
		w->held[w->held_count++] = pkts[i];
	}
	pairs_check(w->shm);
	return got;
}

static void
client_send(struct world *w, uint32_t qpn)
{
	uint8_t bytes[LEN];
	struct pkt pkt = {.data = bytes, .len = LEN};
	struct shm_pair *pair = pairs_route(w->shm, qpn);

	if (pair == NULL)
		return;
	FUZZ_CHECK(!pair->spoiled && qpn < QP_NONE &&
		   pair->partner == w->shm->pairs.qps[qpn].partner);
	packet_fill(bytes, LEN, qpn, 0);
	if (pair_tx(w->shm, pair, qpn, &pkt))
		pair_tx_done(w->shm, pair);
}

static void
client_check(struct world *w)
{
	const struct shm_pairs *p = &w->shm->pairs;
	uint32_t seen[PAIR_RX_BUFFERS / 32] = {0}, lent = 0;

	FUZZ_CHECK(p->free_count + w->held_count == PAIR_RX_BUFFERS);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct shm_pair *pair = &p->all[i];

		FUZZ_CHECK(pair->prod - pair->cons_seen <= SLOTS);
		FUZZ_CHECK(pair->lent != 0 || pair->own->cons == pair->cons);
		lent += pair->lent;
		FUZZ_CHECK(pair->ready <= PKT_BURST);
	}
	for (uint32_t i = 0; i < w->held_count; i++)
		lent -= (w->held[i].flags & PKT_RX_HEADERS) != 0;
	FUZZ_CHECK(lent == 0 && !p->all[1].spoiled);
	for (uint32_t i = 0; i < p->free_count; i++) {
		FUZZ_CHECK(p->free[i] < PAIR_RX_BUFFERS &&
			   !(seen[p->free[i] / 32] & 1u << p->free[i] % 32));
		seen[p->free[i] / 32] |= 1u << p->free[i] % 32;
	}
}

/* ---- The partners ---- */

static void
hostile_slot(struct world *w, uint8_t how)
{
	const struct shm_pair *pair = &w->shm->pairs.all[0];
	uint32_t index = pair->cons + how % SLOTS;
	struct pair_slot *slot = slot_of(w, w->hostile, index);
	uint32_t len = how & 8 ? LONG_LEN : LEN;

	slot->len = how & 0x40 ? (uint16_t)len : take16(&w->in);
	slot->kind = how & 0x80 ? PAIR_PACKET : take8(&w->in);
	slot->qpn = QP_HOSTILE + take8(&w->in) % (QP_END - QP_HOSTILE + 1);
	packet_fill(slot->bytes, len, slot->qpn, 0);
	if (how & 0x20)
		slot->bytes[take8(&w->in)] = take8(&w->in);
	slot->stamp = how & 0x10 ? take16(&w->in) : index + 1;
}

static void
hostile_bytes(struct world *w)
{
	size_t size = sizeof(struct pair_part) + SLOTS * w->shm->pairs.slot_size, len;
	size_t at = take16(&w->in) % size;
	const uint8_t *bytes;

	len = RTE_MIN((size_t)take8(&w->in), size - at);
	bytes = take_bytes(&w->in, &len);
	memcpy((uint8_t *)w->hostile + at, bytes, len);
}

static void
honest_send(struct world *w)
{
	struct pair_slot *slot = slot_of(w, w->honest, w->honest_sent);

	w->honest->cons = w->shm->pairs.all[1].prod;
	if (w->honest_sent - w->shm->pairs.all[1].own->cons == SLOTS)
		return;
	slot->len = honest_len(w->honest_sent);
	slot->kind = PAIR_PACKET;
	packet_fill(slot->bytes, slot->len, QP_HONEST, w->honest_sent);
	slot->stamp = ++w->honest_sent;
}

static void
world_step(struct world *w)
{
	struct shm_pair *pair = &w->shm->pairs.all[0];
	uint8_t op = take8(&w->in), how = take8(&w->in);

	switch (op % 13) {
	case 0:
	case 1:
		hostile_slot(w, how);
		break;
	case 2:
		hostile_bytes(w);
		break;
	case 3:
		w->hostile->cons = pair->prod + (uint32_t)(int8_t)how;
		break;
	case 4:
		w->hostile->asleep = how;
		w->shm->dev->engines[0]->idle.in_turns = how & 2;
		break;
	case 5:
	case 6:
		client_pass(w, how % BURST + 1);
		break;
	case 7:
		client_send(w, QP_HOSTILE + how % (QP_END - QP_HOSTILE));
		break;
	case 8:
		w->now += (uint64_t)how * 1000 * (op & 0x40 ? 1000 : 1);
		break;
	case 9:
		qp_connect(w, QP_CHANGES, how & 1 ? HOSTILE : 0, how & 2);
		w->shm->pairs.qps[QP_CHANGES].registering = how & 4;
		break;
	case 10:
		honest_send(w);
		break;
	case 11:
		w->shm->region.daemon->pairs_off = how & 1;
		w->shm->region.daemon->tx_cons = w->shm->tx.published;
		break;
	default:
		(void)shm_tx_waits(w->shm, QP_HOSTILE, &w->wait, w->now);
		shm_rx_answered(w->shm);
		(void)pairs_have_packets(w->shm);
		FUZZ_CHECK(pairs_deadline(w->shm) != 0);
		break;
	}
	if (w->held_count + BURST > PAIR_RX_BUFFERS || how & 1)
		held_release(w, how);
	client_check(w);
}

/* Takes all that the honest partner has sent, whatever the hostile one shows. */
static void
world_finish(struct world *w)
{
	w->shm->pairs.qps[QP_CHANGES].registering = false;
	for (unsigned i = 0; i < 4 * SLOTS; i++) {
		client_pass(w, BURST);
		held_release(w, BURST);
	}
	held_release(w, PAIR_RX_BUFFERS);
	client_check(w);
	FUZZ_CHECK(w->honest_taken == w->honest_sent);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->in = (struct input){.at = data, .left = size};
	world_open(w);
	for (unsigned i = 0; i < STEPS && w->in.left != 0; i++)
		world_step(w);
	world_finish(w);
	for (uint32_t i = 0; i < w->shm->pairs.count; i++)
		free(w->shm->pairs.all[i].own);
	free(w->hostile);
	free(w->honest);
	free(w->shm->pairs.qps);
	free(w->shm->pairs.buffers);
	free(w->shm->slot_buf);
	free(w->shm->dev->engines[0]);
	free(w->shm->dev);
	free(w->shm->free);
	free(w->shm->region.client);
	free(w->shm->region.daemon);
	free(w->shm);
	return 0;
}
