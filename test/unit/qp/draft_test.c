/* SPDX-License-Identifier: BSD-3-Clause */
/* Drafts: the packet is the one that would have been built, and what a draft is not for
 * takes the way of all requests, as if there had been none. */
#include "qp/ball.h"
#include "qp_link.h"

#define LEN 64
#define FRAME_ROOM 4300

static struct qp_link p, twin;
static uint8_t room[FRAME_ROOM];
static struct qp_draft draft;

static void
init_one(struct qp_link *fixture, const struct qp_link_conf *conf)
{
	qp_link_init(fixture, conf);
	for (uint32_t i = 0; i < 4096; i++)
		fixture->a.mem[i] = (uint8_t)(i * 11 + 3);
	host_recv(&fixture->b, 1, 0x1000, 4096);
}

static void
init(const struct qp_link_conf *conf)
{
	init_one(&p, conf);
	draft = (struct qp_draft){.pkt = {.data = room, .room = sizeof(room)}};
}

static void
init_default(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	init(&conf);
}

static void
post(struct host *h, uint64_t wr_id, uint32_t len, unsigned flags,
	enum ibv_wr_opcode opcode)
{
	struct sge sge = host_sge(h, 16, len);
	struct send_req req = {.wr_id = wr_id,
		.opcode = opcode,
		.flags = flags,
		.sge = &sge,
		.num_sge = len != 0,
		.rkey = h->other->rkey,
		.remote_va = (uintptr_t)h->other->mem + 0x2000};

	assert_int_equal(host_post_send(h, &req), 0);
}

/* It leaves, arrives and is acknowledged. */
static void
draft_goes(uint64_t wr_id, uint32_t len)
{
	qp_draft_sent(&p.a.qp, &draft, p.now);
	assert_int_equal(p.a.qp.req.unacked, 1);
	assert_int_equal(p.a.peer.inflight, 1);
	assert_int_not_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	host_rx(&p.b, draft.pkt.data, draft.pkt.len);
	qp_link_drain(&p);
	expect_sent(&p.a, wr_id, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, len);
	assert_int_equal(p.a.peer.inflight, 0);
}

/* Byte by byte what the other way builds, inline or not, padded or not. */
static void
test_same_bytes(void **state)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 63, 64, 65, 66, 255, 256, 1023, 1024};

	(void)state;
	for (unsigned i = 0; i < 4 * RTE_DIM(lens); i++) {
		uint32_t len = lens[i / 4];
		unsigned flags = IBV_SEND_SIGNALED;
		struct qp_link_conf conf = qp_link_defaults_rdma();

		conf.ipv6 = i & 1;
		flags |= i & 2 && len < 64 ? IBV_SEND_INLINE : 0;
		init(&conf);
		init_one(&twin, &conf);
		assert_true(qp_draft(&p.a.qp, &draft, len));
		post(&p.a, 7, len, flags, IBV_WR_SEND);
		post(&twin.a, 7, len, flags, IBV_WR_SEND);
		assert_true(qp_draft_fill(&p.a.qp, &draft));
		assert_int_equal(host_pull(&twin.a, PULL_ALL), 1);
		assert_int_equal(draft.pkt.len, twin.a.wire[0].len);
		assert_memory_equal(room, twin.a.wire[0].data, draft.pkt.len);
		draft_goes(7, len);
		assert_memory_equal(p.b.mem + 0x1000, p.a.mem + 16, len);
		qp_link_drain(&twin);
		expect_sent(&twin.a, 7, IBV_WC_SUCCESS);
		expect_received(&twin.b, 1, len);
		assert_int_equal(p.a.qp.stats.tx_packets, twin.a.qp.stats.tx_packets);
		qp_link_fini(&p);
		qp_link_fini(&twin);
	}
}

/* What there can be no draft of. */
static void
test_none(void **state)
{
	struct qp_link_conf conf = qp_link_defaults();

	(void)state;
	init_default();
	assert_false(qp_draft(&p.a.qp, &draft, 0));
	assert_false(qp_draft(&p.a.qp, &draft, 1025));
	host_modify(&p.b, IBV_QPS_ERR);
	qp_link_fini_discard(&p);
	conf.type = IBV_QPT_UC;
	qp_link_init(&p, &conf);
	assert_false(qp_draft(&p.a.qp, &draft, LEN));
	qp_link_fini(&p);
}

/* Not what was expected: it is sent all the same, by the other way. */
static void
other_way(uint32_t len, unsigned flags, enum ibv_wr_opcode opcode, unsigned times)
{
	struct cqe cqe;

	init_default();
	host_recv(&p.b, 1, 0x1000, 4096);
	assert_true(qp_draft(&p.a.qp, &draft, LEN));
	for (unsigned i = 0; i < times; i++)
		post(&p.a, i, len, flags | IBV_SEND_SIGNALED, opcode);
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	assert_int_equal(p.a.qp.req.next_psn, PSN_A);
	assert_int_equal(p.a.qp.req.started_idx, p.a.qp.req.next_idx);
	qp_link_drain(&p);
	for (unsigned i = 0; i < times; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	while (host_poll(&p.b, &p.b.recv_cq, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

static void
test_unexpected(void **state)
{
	(void)state;
	other_way(LEN + 1, 0, IBV_WR_SEND, 1);
	other_way(LEN - 1, 0, IBV_WR_SEND, 1);
	other_way(0, 0, IBV_WR_SEND, 1);
	other_way(2 * 1024, 0, IBV_WR_SEND, 1);
	other_way(LEN, IBV_SEND_SOLICITED, IBV_WR_SEND, 1);
	other_way(LEN, IBV_SEND_FENCE, IBV_WR_SEND, 1);
	other_way(LEN, 0, IBV_WR_SEND_WITH_IMM, 1);
	other_way(LEN, 0, WR_RDMA_WRITE, 1);
	other_way(LEN, 0, IBV_WR_RDMA_READ, 1);
	other_way(LEN, 0, IBV_WR_SEND, 2);
}

/* The QP is not where it was when the draft was made, or may not send now. */
static void
refused(void)
{
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	qp_link_fini_discard(&p);
}

static void
drafted(void)
{
	init_default();
	assert_true(qp_draft(&p.a.qp, &draft, LEN));
	post(&p.a, 1, LEN, 0, IBV_WR_SEND);
}

static void
test_not_now(void **state)
{
	struct requester *req = &p.a.qp.req;

	(void)state;
	drafted();
	assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0);
	refused();
	drafted();
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	refused();
	/* It has been sent meanwhile, and is to be sent again. */
	drafted();
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	refused();
	drafted();
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	qp_link_advance(&p, UINT64_C(4096) << 14);
	assert_int_equal(req->next_psn, PSN_A);
	refused();
	/* A READ is under way, a receive is waited for, an early copy is due. */
	drafted();
	req->reads = 1;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	req->reads = 0;
	req->rnr_deadline = p.now + 1;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	req->rnr_deadline = TIME_NEVER;
	req->tlp_state = TLP_DUE;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	req->tlp_state = TLP_OFF;
	/* The windows. */
	p.a.peer.inflight += p.a.peer.window;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	p.a.peer.inflight -= p.a.peer.window;
	req->una_psn -= QP_MAX_UNACKED;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	req->una_psn += QP_MAX_UNACKED;
	/* As many QPs as make them ask less often. */
	p.a.peer.many_qps = 1;
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	p.a.peer.many_qps = UINT32_MAX;
	assert_true(qp_draft_fill(&p.a.qp, &draft));
	qp_draft_sent(&p.a.qp, &draft, p.now);
	qp_link_fini_discard(&p);
}

/* Memory that is not ours to read: the other way says so. */
static void
test_no_memory(void **state)
{
	struct sge sge;
	struct send_req req = {
		.wr_id = 3, .opcode = IBV_WR_SEND, .sge = &sge, .num_sge = 1};

	(void)state;
	init_default();
	assert_true(qp_draft(&p.a.qp, &draft, LEN));
	sge = host_sge(&p.a, 0, LEN);
	sge.lkey ^= 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_false(qp_draft_fill(&p.a.qp, &draft));
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 3, IBV_WC_LOC_PROT_ERR);
	qp_link_fini_discard(&p);
}

/* Lost, it is sent again by the other way. */
static void
test_lost(void **state)
{
	(void)state;
	init_default();
	assert_true(qp_draft(&p.a.qp, &draft, LEN));
	post(&p.a, 9, LEN, IBV_SEND_SIGNALED, IBV_WR_SEND);
	assert_true(qp_draft_fill(&p.a.qp, &draft));
	qp_draft_sent(&p.a.qp, &draft, p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_advance(&p, UINT64_C(4096) << 14);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.wire[0].len, draft.pkt.len);
	assert_memory_equal(p.a.wire[0].data, room, draft.pkt.len);
	qp_link_drain(&p);
	expect_sent(&p.a, 9, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, LEN);
	qp_link_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_unexpected),
		cmocka_unit_test(test_not_now),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
