/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQs whose messages are handed over in mbufs: a mempool runs low, or has no mbuf. */
#include "mbuf_fixture.h"

/* The reserve of a mempool of received frames is for frames. It is counted once for many. */
TEST(low_mempool_keeps_its_reserve)
{
	link_open(64);
	receives_post(5);
	spare = 2;
	for (unsigned i = 0; i < 2; i++) {
		frame_in(OPCODE_RC_SEND_ONLY, i, 100);
		fake_free(one_take(i, 100));
	}
	assert_int_equal(counted, 1);
	spare = 0;
	frame_in(OPCODE_RC_SEND_ONLY, 2, 100);
	fake_free(one_take(2, 100));
	assert_int_equal(p.b.stats.mbufs_handed, 2);
	assert_int_equal(p.b.stats.mbufs_copied, 1);
	/* Copies do not take it either: the SRQ has the same mempool. */
	p.b.srq.mbufs.pool = PORT_POOL;
	frame_in(OPCODE_RC_SEND_ONLY, 3, 100);
	expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 3, 3);
	assert_int_equal(p.b.stats.mbufs_missing, 1);
	spare = 1000;
	for (unsigned i = 3; i < 5; i++) {
		frame_in(OPCODE_RC_SEND_ONLY, i, 100);
		fake_free(one_take(i, 100));
	}
	assert_int_equal(p.b.stats.mbufs_handed, 4);
	assert_int_equal(p.b.shared.mbuf.frames.count, MBUF_SPARE_MOST - 2);
	/* Another mempool is counted anew: nothing of it may be given away. */
	host_recv(&p.b, 1, 0, 0);
	p.b.srq.mbufs.pool = SRQ_POOL;
	mbuf_in(frame_make(SRQ_POOL, OPCODE_RC_SEND_ONLY, 5, 100));
	assert_int_equal(p.b.stats.mbufs_handed, 4);
	assert_int_equal(p.b.stats.mbufs_missing, 2);
	link_close();
}

/* So is that of the mempool which the port sends from, whatever the mempool of the frames. */
TEST(copies_keep_the_reserve_of_the_port)
{
	link_open(64);
	receives_post(3);
	p.b.srq.mbufs.pool = OWN_POOL;
	p.b.shared.mbuf.copies.pool = OWN_POOL;
	p.b.shared.mbuf.copies_all = true;
	spare = 2;
	for (unsigned i = 0; i < 2; i++) {
		frame_in(OPCODE_RC_SEND_ONLY, i, 100);
		fake_free(one_take(i, 100));
	}
	assert_int_equal(counted, 1);
	spare = 0;
	frame_in(OPCODE_RC_SEND_ONLY, 2, 100);
	expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 2, 2);
	spare = 1;
	frame_in(OPCODE_RC_SEND_ONLY, 2, 100);
	fake_free(one_take(2, 100));
	assert_int_equal(p.b.stats.mbufs_copied, 3);
	link_close();
}

/* Without an mbuf the peer waits, in any packet of a message. The receive and what has come stay. */
TEST(missing_mbuf_is_an_rnr_nak)
{
	struct rte_mbuf *m, *at;

	for (unsigned missing = 0; missing < 3; missing++) {
		static const uint8_t opcodes[] = {
			OPCODE_RC_SEND_FIRST, OPCODE_RC_SEND_MIDDLE, OPCODE_RC_SEND_LAST};

		link_open(64);
		receives_post(1);
		p.b.shared.mbuf.copies_all = true;
		for (unsigned i = 0; i < 3; i++) {
			if (i == missing) {
				none_for_copies = true;
				frame_in(opcodes[i], i, 1024);
				expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + i, 0);
				/* The packet behind it is not taken before it. */
				frame_in(opcodes[2], i + 1, 1024);
				expect_no_frame(&p.b);
				none_for_copies = false;
			}
			frame_in(opcodes[i], i, 1024);
		}
		m = at = message_take(3072, 3);
		for (unsigned i = 0; i < 3; i++)
			assert_true(segment_is(&at, i, 1024));
		fake_free(m);
		assert_int_equal(p.b.stats.mbufs_missing, 1);
		assert_int_equal(p.b.stats.rnr_nak_sent, 1);
		assert_int_equal(recv_ring_outstanding(&p.b.srq.ring), 0);
		link_close();
	}
}

/* Through the requester: it waits for its RNR timer, and sends the rest. */
TEST(requester_goes_on_after_the_lack)
{
	struct rte_mbuf *m, *at;

	link_open(64);
	receives_post(1);
	bytes_fill(p.a.mem, 3000, 5);
	none_for_copies = true;
	host_send(&p.a, 1, 0, 3000, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	assert_int_equal(p.b.stats.mbufs_missing, 1);
	none_for_copies = false;
	qp_link_advance(&p, NS_PER_SEC);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	m = message_take(3000, 3);
	for (uint32_t done = 0; done < 3000; done += at->data_len) {
		at = done == 0 ? m : at->next;
		assert_memory_equal((const uint8_t *)at->buf_addr + at->data_off,
			p.a.mem + done, at->data_len);
	}
	fake_free(m);
	link_close();
}
