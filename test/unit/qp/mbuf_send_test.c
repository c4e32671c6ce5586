/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose payload is in an mbuf: their packets, resends, and that each mbuf is given up once. */
#include "mbuf_fixture.h"
#include "qp/mbuf_send.h"

#define BURST 32

static uint8_t buffers[BURST][4400];

/* They are freed at the end, so that a second release is seen. */
static struct rte_mbuf *released[64];
static unsigned released_count;

static void
mbuf_put(struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next) {
		assert_true(m->refcnt != 0);
		if (--m->refcnt != 0)
			continue;
		assert_true(live-- != 0);
		assert_true(released_count < RTE_DIM(released));
		released[released_count++] = m;
	}
}

static const struct mbuf_ops put_ops = {.room = fake_room,
	.is_own = fake_is_own,
	.available = fake_available,
	.copy = fake_copy,
	.release = mbuf_put};

static void
send_open(enum ibv_qp_type type, uint32_t cqe)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.type = type;
	conf.cqe = cqe;
	qp_link_init(&p, &conf);
	p.a.shared.mbuf = (struct mbuf_state){.ops = &put_ops};
}

static void
send_close(void)
{
	qp_link_fini_reset(&p);
	assert_int_equal(live, 0);
	while (released_count != 0)
		free(released[--released_count]);
}

/* len bytes of pattern key, in one segment. */
static struct rte_mbuf *
payload_make(uint32_t len, uint32_t key)
{
	static uint8_t bytes[ROOM];

	bytes_fill(bytes, len, key);
	return fake_alloc(PORT_POOL, bytes, len);
}

/* Posts a request from an mbuf as lib/verbs does. */
static void
mbuf_post_as(
	enum ibv_wr_opcode opcode, uint64_t wr_id, struct rte_mbuf *m, unsigned flags)
{
	struct sq *sq = &p.a.qp.sq;
	struct send_wqe *wqe = sq_next(sq, sq->prod);

	assert_non_null(wqe);
	wqe->wr_id = wr_id;
	wqe->len = m->pkt_len;
	wqe->opcode = (uint8_t)opcode;
	wqe->flags = (uint8_t)(flags | WQE_MBUF);
	wqe->num_sge = 0;
	wqe->imm = 0x55;
	wqe->remote_va = (uintptr_t)p.b.mem;
	wqe->rkey = p.a.rkey;
	mbuf_send_write(wqe, m);
	sq_publish(sq, sq->prod + 1);
}

static void
mbuf_post(uint64_t wr_id, struct rte_mbuf *m, unsigned flags)
{
	mbuf_post_as(IBV_WR_SEND, wr_id, m, flags);
}

/* a sends what it can; b gets all but the packets of the mask. Returns how many packets. */
static unsigned
frames_send(uint32_t lost)
{
	struct pkt pkts[BURST];
	unsigned n;

	for (unsigned i = 0; i < BURST; i++)
		pkts[i] = (struct pkt){.data = buffers[i], .room = sizeof(buffers[i])};
	p.a.shared.now = p.now;
	n = qp_tx(&p.a.qp, pkts, BURST, p.now);
	for (unsigned i = 0; i < n; i++) {
		assert_null(pkts[i].owner);
		if ((lost >> i & 1) == 0)
			host_rx(&p.b, pkts[i].data, pkts[i].len);
	}
	return n;
}

static void
respond(void)
{
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
}

static void
expect_payload(uint64_t wr_id, uint32_t offset, uint32_t len, uint32_t key)
{
	expect_received(&p.b, wr_id, len);
	assert_true(bytes_match(p.b.mem + offset, len, key));
}

TEST(mbuf_is_kept_until_it_is_acknowledged)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 777, 1024};

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		send_open(0, 64);
		host_recv(&p.b, 1, 0, 2048);
		mbuf_post(7, payload_make(lens[i], i), IBV_SEND_SIGNALED);
		assert_int_equal(frames_send(0), 1);
		expect_payload(1, 0, lens[i], i);
		assert_int_equal(live, 1); /* until it is acknowledged */
		respond();
		assert_int_equal(live, 0);
		expect_sent(&p.a, 7, IBV_WC_SUCCESS);
		send_close();
	}
}

/* Chains and long messages, segment by segment. */
TEST(long_messages)
{
	static const uint32_t lens[] = {700, 1, 0, 1024, 1400};
	struct rte_mbuf *m = NULL, *last = NULL;
	uint8_t want[3125];
	uint32_t at = 0;

	send_open(0, 64);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		struct rte_mbuf *segment = payload_make(lens[i], i);

		bytes_fill(want + at, lens[i], i);
		at += lens[i];
		if (m == NULL) {
			m = last = segment;
			continue;
		}
		last->next = segment;
		last = segment;
		m->nb_segs++;
		m->pkt_len += lens[i];
	}
	host_recv(&p.b, 1, 0, 4096);
	host_recv(&p.b, 2, 4096, 4096);
	mbuf_post(7, m, 0);
	mbuf_post(8, payload_make(1025, 9), IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(0), 4 + 2);
	expect_received(&p.b, 1, sizeof(want));
	assert_memory_equal(p.b.mem, want, sizeof(want));
	expect_payload(2, 4096, 1025, 9);
	respond();
	assert_int_equal(live, 0);
	expect_sent(&p.a, 8, IBV_WC_SUCCESS);
	send_close();
}

/* The application has a second reference: the mbuf stays its own. */
TEST(mbuf_with_another_holder)
{
	struct rte_mbuf *m;

	send_open(0, 64);
	host_recv(&p.b, 1, 0, 2048);
	m = payload_make(100, 2);
	m->refcnt = 2;
	mbuf_post(7, m, IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(0), 1);
	expect_payload(1, 0, 100, 2);
	respond();
	expect_sent(&p.a, 7, IBV_WC_SUCCESS);
	assert_int_equal(live, 1);
	mbuf_put(m);
	send_close();
}

/* The packet is lost, and is built from the mbuf once more. */
TEST(lost_packet)
{
	send_open(0, 64);
	host_recv(&p.b, 1, 0, 2048);
	mbuf_post(7, payload_make(1000, 3), IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(1), 1);
	for (unsigned tries = 0; p.b.qp.stats.rx_msgs == 0; tries++) {
		assert_true(tries < 10);
		qp_link_advance(&p, NS_PER_SEC);
		(void)frames_send(0);
	}
	expect_payload(1, 0, 1000, 3);
	assert_true(p.a.stats.retransmitted + p.a.stats.tlp_sent >= 1);
	assert_int_equal(live, 1);
	respond();
	expect_sent(&p.a, 7, IBV_WC_SUCCESS);
	assert_int_equal(live, 0);
	send_close();
}

/* Beside other requests; unsignaled ones are given up, too. */
TEST(among_other_requests)
{
	send_open(0, 64);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.b, i, 2048 * i, 2048);
	bytes_fill(p.a.mem, 100, 50);
	mbuf_post(1, payload_make(300, 51), 0);
	host_send(&p.a, 2, 0, 100, 0);
	mbuf_post_as(IBV_WR_SEND_WITH_IMM, 3, payload_make(301, 52), 0);
	host_send(&p.a, 4, 0, 100, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(0), 4);
	expect_payload(0, 0, 300, 51);
	expect_payload(1, 2048, 100, 50);
	expect_payload(2, 4096, 301, 52);
	expect_payload(3, 6144, 100, 50);
	respond();
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	assert_int_equal(live, 0);
	send_close();
}

TEST(write_from_an_mbuf)
{
	send_open(0, 64);
	mbuf_post_as(IBV_WR_RDMA_WRITE, 1, payload_make(500, 8), IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(0), 1);
	assert_true(bytes_match(p.b.mem, 500, 8));
	respond();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(live, 0);
	send_close();
}

/* The request behind it waits for a READ, so the packet is built once more, with AckReq. */
TEST(packet_is_built_twice)
{
	send_open(0, 64);
	host_recv(&p.b, 1, 0, 2048);
	host_recv(&p.b, 2, 2048, 2048);
	host_read(&p.a, 5, 4096, 0, 8);
	mbuf_post(6, payload_make(400, 4), 0);
	host_send(&p.a, 7, 0, 8, IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	assert_int_equal(frames_send(0), 2);
	expect_payload(1, 0, 400, 4);
	respond();
	assert_int_equal(live, 0);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	(void)frames_send(0);
	expect_received(&p.b, 2, 8);
	respond();
	expect_sent(&p.a, 7, IBV_WC_SUCCESS);
	send_close();
}

/* ERR and RESET, with requests that were sent and others that were not; a NAK; a full CQ. */
TEST(given_up_once)
{
	for (unsigned how = 0; how < 4; how++) {
		enum ibv_wr_opcode opcode = how == 3 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
		struct cqe cqe;

		send_open(0, how == 3 ? 1 : 64);
		if (how == 2)
			host_recv(&p.b, 1, 0, 10);
		mbuf_post_as(opcode, 1, payload_make(100, 1), IBV_SEND_SIGNALED);
		mbuf_post_as(opcode, 2, payload_make(100, 2), IBV_SEND_SIGNALED);
		assert_int_equal(frames_send(how < 2 ? 3 : 0), 2);
		mbuf_post_as(opcode, 3, payload_make(100, 3), 0);
		assert_int_equal(live, 3);
		if (how < 2)
			assert_int_equal(
				host_modify(&p.a, how ? IBV_QPS_RESET : IBV_QPS_ERR), 0);
		else
			respond();
		assert_int_equal(live, 0);
		while (host_poll(&p.a, &p.a.send_cq, &cqe) ||
			host_poll(&p.b, &p.b.recv_cq, &cqe))
			;
		if (how == 3) {
			expect_event(&p.a, IBV_EVENT_CQ_ERR);
			expect_event(&p.a, IBV_EVENT_QP_FATAL);
		}
		send_close();
	}
}
