/* SPDX-License-Identifier: BSD-3-Clause */
/* Two clients of a daemon, which the test plays, and their pair. The engine lock is real, but there
 * are no passes: the test calls the port. */
#ifndef ROCADE_TEST_PAIR_FIXTURE_H
#define ROCADE_TEST_PAIR_FIXTURE_H

#include "shm_fixture.h"
#include "wire/hdr.h"
#include "wire/pkt_parse.h"

#define BURST 16

/* A client. QP_n of one is connected with QP_n of the other, if with any. */
#define QP_1 17
#define QP_2 18
#define QP_OTHER 19 /* connected with a QP of a third client */
#define QP_UD 20    /* connected with none */

struct pair_side {
	struct daemon_end d;
	struct port port;
	struct sw_device device;
	struct shm *shm;
	struct dev *dev;
	struct port_stats stats;
	uint64_t now;
	uint32_t id; /* the daemon's number of this client */
	int part;    /* its own part of the pair; -1: none yet */
	int wake; /* the end that it gets of the connection; -1: of one without another end */
};

struct pair_fixture {
	struct pair_side a, b;
	unsigned fds;
};

static inline void
side_open(struct pair_side *s, uint32_t id)
{
	struct sw_reply reply = reply_valid();
	struct session session;

	memset(s, 0, sizeof(*s));
	s->id = id;
	s->part = s->wake = -1;
	s->now = NS_PER_SEC;
	daemon_open(&s->d, &session);
	reply_send(s->d.fd, &reply, sizeof(reply), s->d.fds, SW_ATTACH_FDS);
	reply_send(s->d.fd, &reply, sizeof(reply), NULL, 0);
	daemon_close_passed(&s->d);
	assert_int_equal(shm_attach(&session, &s->port, &s->device, &s->shm), 0);
	assert_int_equal(request_recv(s->d.fd).type, SW_ATTACH);
	assert_int_equal(request_recv(s->d.fd).type, SW_START);
	s->shm->dev = s->dev = lock_device_make();
	s->shm->now = &s->now;
	s->shm->dev_stats = &s->stats;
}

/* Proves that every buffer is back. */
static inline void
side_close(struct pair_side *s)
{
	struct pkt none;

	if (ring_cons_refresh(&s->d.tx))
		ring_release(&s->d.tx, ring_count(&s->d.tx));
	assert_int_equal(s->port.ops->tx_alloc(s->shm, &none, 0), 0);
	assert_int_equal(s->shm->free_count, s->shm->region.geom.tx_bufs);
	assert_int_equal(s->shm->pairs.free_count, PAIR_RX_BUFFERS);
	lock_device_free(s->dev);
	s->port.ops->close(s->port.drv);
	daemon_close(&s->d);
	if (s->part >= 0)
		close(s->part);
}

/* The daemon answers that the peer is a QP of this client: 0 if of none; mutual: which has
 * registered this QP. */
static inline void
side_register(struct pair_side *s, uint32_t qpn, uint32_t partner, bool mutual)
{
	struct sw_reply reply = reply_valid();
	uint8_t gid[16] = {1};

	reply.client_id = partner;
	reply.qpn = mutual;
	reply_send(s->d.fd, &reply, sizeof(reply), NULL, 0);
	assert_int_equal(shm_hooks.peer_set(s->shm, qpn, gid, gid, qpn), 0);
	assert_int_equal(request_recv(s->d.fd).type, SW_PEER_SET);
}

/* The daemon reports one event, whose partner is `of`. Returns what the client acknowledges. */
static inline uint32_t
side_event_fds(
	struct pair_side *s, uint32_t event, uint32_t of, const int *fds, unsigned count)
{
	struct sw_reply reply = reply_valid(), none = reply_valid();
	struct sw_request req;

	reply.qpn = event;
	reply.client_id = of;
	reply.pair = pair_geom_of(&reply.geom);
	none.qpn = SW_PAIR_NONE;
	reply_send(s->d.fd, &reply, sizeof(reply), fds, count);
	reply_send(s->d.fd, &none, sizeof(none), NULL, 0);
	pairs_serve(s->shm);
	req = request_recv(s->d.fd);
	assert_true(req.type == SW_PAIR && req.dest_qpn == SW_PAIR_NONE);
	req = request_recv(s->d.fd);
	assert_true(req.type == SW_PAIR && req.qpn == of);
	return req.dest_qpn;
}

/* As above. fd: of a part, -1: none. */
static inline uint32_t
side_event(struct pair_side *s, uint32_t event, uint32_t of, int fd)
{
	int fds[2] = {fd, s->wake}, ends[2] = {-1, -1};
	unsigned count = fd < 0 ? 0 : event == SW_PAIR_OWN ? 2 : 1;
	uint32_t told;

	if (count == 2 && s->wake < 0) {
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		fds[1] = ends[0];
	}
	told = side_event_fds(s, event, of, fds, count);
	for (unsigned i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return told;
}

static inline int
part_create(void)
{
	struct region_geom region = reply_valid().geom;
	struct pair_geom geom = pair_geom_of(&region);
	int fd = memfd_create("rocade-pair", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)pair_part_size(&geom)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static inline void
side_own(struct pair_side *s, uint32_t of)
{
	s->part = part_create();
	assert_int_equal(side_event(s, SW_PAIR_OWN, of, s->part), SW_PAIR_OWN);
	/* The client has sealed it. */
	assert_int_equal(
		fcntl(s->part, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | WRITER_SEALS);
}

/* Each side has its own part. */
static inline void
parts_open(struct pair_fixture *f)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	f->a.wake = ends[0];
	f->b.wake = ends[1];
	side_own(&f->a, f->b.id);
	side_own(&f->b, f->a.id);
	for (unsigned i = 0; i < 2; i++)
		close(ends[i]);
	f->a.wake = f->b.wake = -1;
}

static inline void
pair_open(struct pair_fixture *f)
{
	parts_open(f);
	assert_int_equal(
		side_event(&f->a, SW_PAIR_PEER, f->b.id, f->b.part), SW_PAIR_PEER);
	assert_int_equal(
		side_event(&f->b, SW_PAIR_PEER, f->a.id, f->a.part), SW_PAIR_PEER);
}

static inline struct shm_pair *
side_pair(struct pair_side *s)
{
	return &s->shm->pairs.all[0];
}

enum woken {
	NOT_WOKEN,
	WOKEN,      /* for packets that it does not know of */
	WOKEN_LAGS, /* for packets that it does not take */
};

/* How the partner has woken the client since the last call. */
static inline enum woken
side_woken(struct pair_side *s)
{
	struct pollfd fds[PAIRS_MAX];
	unsigned count = pairs_poll_fds(s->shm, fds);

	if (poll(fds, count, 0) == 0)
		return NOT_WOKEN;
	return pairs_wakes_read(s->shm, fds, count) ? WOKEN_LAGS : WOKEN;
}

/* Bytes of a RoCEv2 packet over IPv4 to this QP. The last one is the number. */
static inline uint16_t
packet_fill(uint8_t *bytes, uint32_t dest_qpn, uint8_t number)
{
	const uint16_t len = 62; /* an acknowledgement: the shortest one */

	memset(bytes, 0, len);
	bytes[12] = 0x08;
	bytes[14] = 0x45;
	bytes[23] = IPPROTO_UDP;
	bytes[36] = ROCE_UDP_PORT >> 8;
	bytes[37] = ROCE_UDP_PORT & 0xff;
	bytes[47] = (uint8_t)(dest_qpn >> 16);
	bytes[48] = (uint8_t)(dest_qpn >> 8);
	bytes[49] = (uint8_t)dest_qpn;
	bytes[len - 1] = number;
	return len;
}

#define LONG PAIR_LONG

/* A long packet, whose payload is the number in all bytes. */
static inline void
long_packet_fill(uint8_t *bytes, uint16_t len, uint32_t dest_qpn, uint8_t number)
{
	const unsigned udp_len = len - 34u;
	uint16_t headers;

	memset(bytes, number, len);
	headers = packet_fill(bytes, dest_qpn, number);
	bytes[headers - 1] = number;
	bytes[38] = (uint8_t)(udp_len >> 8);
	bytes[39] = (uint8_t)udp_len;
}

/* Where a received packet has its payload. */
static inline const uint8_t *
packet_frame(const struct pkt *pkt)
{
	return pkt->flags & PKT_RX_HEADERS
		       ? ((const struct pkt_headers *)pkt->data)->frame
		       : pkt->data;
}

/* Whether it is such a packet. */
static inline bool
is_number(const struct pkt *pkt, uint16_t len, uint8_t number)
{
	const uint8_t *frame = packet_frame(pkt);
	bool same = pkt->len == len && pkt->data[61] == number;

	for (uint16_t i = 61; i < len; i++)
		same = same && frame[i] == number;
	return same;
}

/* Sends n packets of the QP, with numbers from `number` on. Returns how many the port took. */
static inline unsigned
side_send(struct pair_side *s, uint32_t qpn, unsigned n, uint8_t number)
{
	struct pkt pkts[BURST];
	unsigned got = s->port.ops->tx_alloc(s->shm, pkts, n), sent;

	for (unsigned i = 0; i < got; i++) {
		pkts[i].len = packet_fill(pkts[i].data, qpn, (uint8_t)(number + i));
		pkts[i].flags = qpn << PKT_TX_QPN_SHIFT;
	}
	sent = s->port.ops->tx_burst(s->shm, pkts, got);
	s->port.ops->tx_release(s->shm, pkts + sent, got - sent);
	return sent;
}

/* As the engine asks for a QP whose timer has expired. */
static inline bool
side_waits(struct pair_side *s, uint32_t qpn, struct answer_wait *wait)
{
	return s->port.ops->tx_waits(s->shm, qpn, wait, s->now);
}

static inline unsigned
side_take(struct pair_side *s, struct pkt *pkts, unsigned n)
{
	return s->port.ops->rx_burst(s->shm, pkts, n);
}

/* Expects packets with numbers from `number` on, and no more. */
static inline void
side_expect(struct pair_side *s, unsigned n, uint8_t number)
{
	struct pkt pkts[BURST];

	assert_int_equal(side_take(s, pkts, BURST), n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pkts[i].len, 62);
		assert_int_equal(((uint8_t *)pkts[i].data)[61], number + i);
	}
	s->port.ops->rx_release(s->shm, pkts, n);
}

/* How many descriptors the daemon finds. It takes none. */
static inline uint32_t
daemon_finds(struct pair_side *s)
{
	assert_true(ring_cons_refresh(&s->d.tx));
	return ring_count(&s->d.tx);
}

/* The daemon takes n packets of one client to the other, which it shows to that one first. */
static inline void
daemon_forwards(struct pair_side *from, struct pair_side *to, unsigned n)
{
	assert_true(daemon_finds(from) >= n);
	for (unsigned i = 0; i < n; i++) {
		struct ring_desc desc = ring_peek(&from->d.tx, i);
		const uint8_t *bytes = region_tx_buf(&from->d.region, desc.buf);

		desc.buf = to->d.rx.prod & to->d.rx.mask;
		desc.qpn = 0;
		assert_true(ring_prod_refresh(&to->d.rx) && ring_room(&to->d.rx) != 0);
		memcpy(region_rx_buf(&to->d.region, desc.buf), bytes, desc.len);
		ring_put(&to->d.rx, &desc);
	}
	ring_publish(&to->d.rx);
	ring_release(&from->d.tx, n);
}

/* Parts of pairs that this process has mapped. */
static inline unsigned
parts_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	if (maps == NULL)
		abort();
	while (fgets(line, sizeof(line), maps) != NULL)
		n += strstr(line, "rocade-pair") != NULL;
	fclose(maps);
	return n;
}

/* Clients without QPs and without a pair. */
static inline void
clients_open(struct pair_fixture *f)
{
	f->fds = fds_count();
	side_open(&f->a, 1);
	side_open(&f->b, 2);
}

/* With QPs that are connected, and a pair; no packet is under way. */
static inline void
fixture_open(struct pair_fixture *f)
{
	clients_open(f);
	for (uint32_t qpn = QP_1; qpn <= QP_2; qpn++) {
		side_register(&f->a, qpn, f->b.id, false);
		side_register(&f->b, qpn, f->a.id, true);
	}
	side_register(&f->b, QP_OTHER, 3, true);
	pair_open(f);
	side_expect(&f->b, 0, 0); /* announces that it accepts packets of both QPs */
	side_expect(&f->a, 0, 0);
	side_expect(&f->b, 0, 0);
}

static inline void
fixture_close(struct pair_fixture *f)
{
	side_close(&f->a);
	side_close(&f->b);
	assert_int_equal(fds_count(), f->fds);
}

#endif
