/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that the requester sends: windows, AckReq, PSNs, local errors (IBA 9.7.3,
 * 9.7.5.1). */
#include <errno.h>
#include <string.h>

#include "qp_link.h"
#include "qp/window.h"

static struct qp_link p;

/* The last packet of a pull has AckReq: without it there is no ACK (docs/protocol.md
 * 7.3). The others have none, so that ACKs can be coalesced. */
TEST(last_packet_has_ackreq)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 10; i++)
		host_send(&p.a, i, 0, 8, 0);
	for (unsigned i = 0; i < 10; i++)
		host_recv(&p.b, i, 0, 8);
	host_pull(&p.a, 4);
	host_pull(&p.a, PULL_ALL);
	for (unsigned i = 0; i < 10; i++)
		expect_frame(&p.a, i, OPCODE_RC_SEND_ONLY, PSN_A + i, i == 3 || i == 9);
	qp_link_drain(&p);
	assert_int_equal(p.a.qp.req.una_idx, 10);
	for (unsigned i = 0; i < 10; i++)
		expect_received(&p.b, i, 8);
	qp_link_fini(&p);
}

/* The last packet of a signaled request has AckReq, so that its completion does not wait
 * for the requests behind it. */
TEST(signaled_request_has_ackreq)
{
	qp_link_init_default(&p);
	host_send(&p.a, 0, 0, 2048, IBV_SEND_SIGNALED);
	host_send(&p.a, 1, 0, 2048, 0);
	host_pull(&p.a, PULL_ALL);
	for (unsigned i = 0; i < 4; i++)
		expect_frame(&p.a, i,
			i % 2 == 0 ? OPCODE_RC_SEND_FIRST : OPCODE_RC_SEND_LAST,
			PSN_A + i, i % 2);
	wire_drop_all(&p.a);
	host_modify(&p.a, IBV_QPS_RESET);
	qp_link_fini(&p);
}

/* At most 128 packets are unacknowledged. AckReq is set at least every quarter of that,
 * so that acknowledgements arrive before the window is used up. */
TEST(at_most_128_packets_unacked)
{
	struct qp_link_conf conf = qp_link_defaults();
	unsigned without = 0;

	conf.mtu = IBV_MTU_256;
	for (unsigned shift = 0; shift < 40; shift++) {
		conf.psn[0] = 0xFFFF80 + shift;
		qp_link_init(&p, &conf);
		host_send(&p.a, 1, 0, 200 * 256, IBV_SEND_SIGNALED);
		host_recv(&p.b, 2, 0, 200 * 256);
		assert_int_equal(host_pull(&p.a, PULL_ALL), QP_MAX_UNACKED);
		for (unsigned i = 0; i < QP_MAX_UNACKED; i++) {
			without = wire_view(&p.a, i).ack_req ? 0 : without + 1;
			assert_true(without < QP_MAX_UNACKED / 4);
		}
		assert_int_equal(without, 0); /* the last one has AckReq */
		assert_false(qp_wants_tx(&p.a.qp));
		/* As many packets may leave as are acknowledged. */
		inject_ack(&p.a, AETH_ACK, psn_add(conf.psn[0], 9));
		assert_int_equal(host_pull(&p.a, PULL_ALL), 10);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_received(&p.b, 2, 200 * 256);
		assert_memory_equal(p.a.mem, p.b.mem, 200 * 256);
		qp_link_fini(&p);
	}
}

/* The peer window, which other QPs share. */
TEST(peer_window_is_kept)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.peer_window = 10;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 20; i++) {
		host_send(&p.a, i, 0, 8, 0);
		host_recv(&p.b, i, 0, 8);
	}
	p.a.peer.send.inflight += 4; /* of another QP */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 6);
	assert_true(wire_view(&p.a, 5).ack_req);
	assert_true(qp_peer_full(&p.a.qp));
	assert_true(qp_wants_tx(&p.a.qp));
	p.a.peer.send.inflight -= 4;
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	inject_ack(&p.a, AETH_ACK, PSN_A + 2);
	assert_int_equal(p.a.peer.send.inflight, 7);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	/* A resent packet is not counted twice. */
	qp_link_advance(&p, NS_PER_SEC / 8);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 10);
	qp_link_drain(&p);
	for (unsigned i = 0; i < 20; i++)
		expect_received(&p.b, i, 8);
	qp_link_fini(&p);
}

/* PSN arithmetic is modulo 2^24 (IBA 9.7.1). The wrap lies at each position inside
 * messages and acknowledged ranges. The responder's MSN wraps, too. */
TEST(psn_wraps)
{
	for (unsigned i = 0; i < 16; i++) {
		struct qp_link_conf conf = qp_link_defaults();

		conf.psn[0] = psn_add(0, PSN_MASK - i + 1);
		conf.psn[1] = 0xFFFFFF;
		qp_link_init(&p, &conf);
		p.b.qp.resp.msn = psn_add(0, PSN_MASK - i / 4);
		for (unsigned k = 0; k < 5; k++) {
			host_recv(&p.b, k, 6000 * k, 6000);
			host_send(&p.a, k, 6000 * k, 4000, IBV_SEND_SIGNALED);
		}
		host_pull(&p.a, PULL_ALL);
		wire_drop(&p.a, i); /* also go-back-N across the wrap */
		qp_link_drain(&p);
		for (unsigned k = 0; k < 5; k++) {
			expect_sent(&p.a, k, IBV_WC_SUCCESS);
			expect_received(&p.b, k, 4000);
			assert_memory_equal(p.a.mem + 6000 * k, p.b.mem + 6000 * k, 4000);
		}
		assert_int_equal(p.b.qp.resp.epsn, psn_add(conf.psn[0], 20));
		assert_int_equal(p.b.qp.resp.msn, psn_add(5, PSN_MASK - i / 4));
		qp_link_fini(&p);
	}
}

static void
bad_send(struct host *h, uint64_t wr_id, uint32_t len, unsigned flags)
{
	struct sge sge = host_sge(h, 0, len);
	struct send_req req = {.wr_id = wr_id, .flags = flags, .sge = &sge, .num_sge = 1};

	sge.lkey ^= 1;
	assert_int_equal(host_post_send(h, &req), 0);
}

/*
 * A wrong local lkey or range (docs/protocol.md 9): nothing of that request is sent. The
 * requests before it complete first, then it completes with LOC_PROT_ERR (C10-83), and
 * the rest is flushed. With each length of the failing request and number of requests
 * before it, signaled or not, pulled at once or one by one.
 */
static void
protection_run(uint32_t len, unsigned flags, unsigned before, unsigned burst)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.timeout = 0; /* only the protocol may bring the error about */
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < before; i++) {
		host_recv(&p.b, i, 0, 1500);
		host_send(&p.a, i, 0, 700 * (i % 3), flags);
	}
	bad_send(&p.a, 50, len, flags);
	host_send(&p.a, 51, 0, 8, 0);
	while (host_pull(&p.a, burst) != 0)
		;
	for (unsigned i = 0; i < p.a.wire_count; i++)
		assert_true(psn_diff(wire_view(&p.a, i).psn, p.a.qp.req.sent_psn) < 0);
	if (before != 0)
		expect_idle(&p.a);
	qp_link_drain(&p);
	for (unsigned i = 0; i < before; i++) {
		expect_received(&p.b, i, 700 * (i % 3));
		if (flags & IBV_SEND_SIGNALED)
			expect_sent(&p.a, i, IBV_WC_SUCCESS);
	}
	expect_sent_vendor(&p.a, 50, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	expect_sent(&p.a, 51, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	expect_idle(&p.a);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	qp_link_fini(&p);
}

TEST(bad_local_key_fails_request)
{
	for (unsigned i = 0; i < 2 * 2 * 4 * 3; i++)
		protection_run((i & 1) != 0 ? 8 : 3000,
			(i & 2) != 0 ? IBV_SEND_SIGNALED : 0, i / 4 % 4,
			(const unsigned[]){1, 3, PULL_ALL}[i / 16]);
}

/* As bad_local_key_fails_request(), and the requests before are resent first. */
TEST(bad_local_key_after_loss)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 3; i++) {
		host_recv(&p.b, i, 0, 1500);
		host_send(&p.a, i, 0, 1500, 0);
	}
	bad_send(&p.a, 50, 8, 0);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	qp_link_advance(&p, NS_PER_SEC / 10);
	qp_link_drain(&p);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	for (unsigned i = 0; i < 3; i++)
		expect_received(&p.b, i, 1500);
	expect_sent(&p.a, 50, IBV_WC_LOC_PROT_ERR);
	expect_idle(&p.a);
	qp_link_fini(&p);
}

/* A region is deregistered between a packet and its retransmission, or in the middle of
 * its message. */
TEST(key_freed_while_sending)
{
	for (unsigned resend = 0; resend < 2; resend++) {
		struct qp_link_conf conf = qp_link_defaults();

		conf.mtu = IBV_MTU_256;
		qp_link_init(&p, &conf);
		host_recv(&p.b, 1, 0, 8);
		host_recv(&p.b, 2, 0, 8000);
		host_send(&p.a, 1, 0, 8, IBV_SEND_INLINE);
		host_send(&p.a, 2, 0, 8000, 0);
		assert_int_equal(host_pull(&p.a, 4), 4);
		assert_int_equal(key_free(&p.a.keys, p.a.lkey), 0);
		if (resend) {
			wire_drop(&p.a, 3);
			wire_deliver_all(&p.a);
			qp_link_advance(&p, NS_PER_SEC);
		}
		qp_link_drain(&p);
		expect_received(&p.b, 1, 8);
		expect_sent(&p.a, 2, IBV_WC_LOC_PROT_ERR);
		expect_idle(&p.a);
		assert_int_equal(p.b.qp.resp.msg, OP_SEND);
		assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		expect_recv_error(&p.b, 2, IBV_WC_WR_FLUSH_ERR, ANY);
		qp_link_fini(&p);
	}
}

/* A key of another PD is as wrong as none (IBA 10.6.3.2). */
TEST(key_of_other_pd_fails)
{
	uint32_t other;
	struct sge sge;
	struct send_req req = {.wr_id = 1, .sge = &sge, .num_sge = 1};

	qp_link_init_default(&p);
	assert_int_equal(key_alloc(&p.a.keys, PD_A + 1, (uintptr_t)p.a.mem, p.a.mem, 64,
				 0, &other),
		0);
	sge = (struct sge){.addr = (uintptr_t)p.a.mem, .len = 8, .lkey = other};
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent(&p.a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(key_free(&p.a.keys, other), 0);
	qp_link_fini(&p);
}

/* A post to a full queue fails until a completion has been polled (ibv_post_send(3)). */
TEST(full_queue_is_refused)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct send_req req = {.wr_id = 9};

	conf.send_wr = 4;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 4; i++) {
		host_recv(&p.b, i, 0, 8);
		host_send(&p.a, i, 0, 8, i == 1 ? IBV_SEND_SIGNALED : 0);
	}
	assert_int_equal(host_post_send(&p.a, &req), -ENOMEM);
	qp_link_drain(&p);
	assert_int_equal(host_post_send(&p.a, &req), -ENOMEM);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_post_send(&p.a, &req), -ENOMEM);
	for (unsigned i = 0; i < 4; i++)
		expect_received(&p.b, i, 8);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	qp_link_fini(&p);
}

/* SQD: started messages finish and are acknowledged, although posted ones are behind
 * them. No message is started (docs/protocol.md 13.3). */
TEST(sqd_finishes_started_messages)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.timeout = 0;
	for (unsigned signaled = 0; signaled < 2; signaled++) {
		qp_link_init(&p, &conf);
		for (unsigned i = 0; i < 6; i++) {
			host_recv(&p.b, i, 0, 3000);
			host_send(&p.a, i, 0, 3000, signaled ? IBV_SEND_SIGNALED : 0);
		}
		assert_int_equal(host_pull(&p.a, 7), 7); /* in the middle of the third */
		assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0);
		wire_drop(&p.a, 5);
		wire_drop(&p.a, 0);
		qp_link_drain(&p);
		for (unsigned i = 0; i < 3; i++) {
			expect_received(&p.b, i, 3000);
			if (signaled)
				expect_sent(&p.a, i, IBV_WC_SUCCESS);
		}
		assert_false(p.a.qp.req.draining);
		expect_idle(&p.a);
		expect_idle(&p.b);
		assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
		qp_link_drain(&p);
		for (unsigned i = 3; i < 6; i++) {
			expect_received(&p.b, i, 3000);
			if (signaled)
				expect_sent(&p.a, i, IBV_WC_SUCCESS);
		}
		qp_link_fini(&p);
	}
}

/* No request is sent before RTS, and none in ERR (docs/protocol.md 13). */
TEST(no_requests_before_rts)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.unconnected = true;
	qp_link_init(&p, &conf);
	host_send(&p.a, 1, 0, 8, 0);
	for (unsigned s = IBV_QPS_RESET; s <= IBV_QPS_RTR; s++) {
		p.a.qp.state = (uint8_t)s;
		assert_false(qp_wants_tx(&p.a.qp));
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	}
	p.a.qp.state = IBV_QPS_ERR;
	assert_true(qp_wants_tx(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent_vendor(&p.a, 1, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	assert_false(qp_wants_tx(&p.a.qp));
	qp_link_fini(&p);
}
