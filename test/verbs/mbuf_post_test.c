/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from mbufs of an application (rocade_post_send_mbuf()), over net_memif. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include <rocade/mbuf.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define MESSAGES 500
#define SHORT_BYTES 900 /* one packet */

static unsigned posted, received;

static void
sides_open(void)
{
	side_open(&sides[0], HOW_FUNCTION);
	side_open(&sides[1], HOW_FUNCTION);
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
	for (unsigned i = 0; i < DEPTH; i++)
		recv_post(&sides[1], i);
	posted = received = 0;
}

static void
sides_close(void)
{
	side_close(&sides[0]);
	side_close(&sides[1]);
}

/* len bytes of the value of this number in segments of 1024 at most. */
static struct rte_mbuf *
message_make(unsigned number, uint32_t len)
{
	struct rte_mbuf *m = NULL;

	for (uint32_t at = 0; at < len;) {
		uint32_t part = RTE_MIN(len - at, UINT32_C(1024));
		struct rte_mbuf *segment = rte_pktmbuf_alloc(pool);

		assert_non_null(segment);
		memset(rte_pktmbuf_append(segment, (uint16_t)part), (int)(number % 251),
			part);
		if (m == NULL)
			m = segment;
		else
			assert_int_equal(rte_pktmbuf_chain(m, segment), 0);
		at += part;
	}
	return m;
}

/* By turns from an mbuf of one packet, from a chain, and by a list without mbufs. */
static uint32_t
message_len(unsigned number)
{
	return number % 3 == 0 ? SHORT_BYTES : MSG_BYTES;
}

static void
message_post(unsigned number)
{
	struct ibv_send_wr wr = {.wr_id = number,
		.opcode = IBV_WR_SEND,
		.send_flags = number % 8 == 7 ? IBV_SEND_SIGNALED : 0};

	if (number % 3 == 2) {
		send_post(&sides[0], number);
		return;
	}
	assert_int_equal(rocade_post_send_mbuf(sides[0].qp, &wr,
				 message_make(number, message_len(number))),
		0);
}

static void
messages_pass(void)
{
	struct await passing = {.pauses = 0};
	unsigned done = 0;
	struct ibv_wc wc;

	while (received < MESSAGES) {
		assert_true(await_goes_on(&passing));
		while (posted < MESSAGES && posted - done < DEPTH)
			message_post(posted++);
		sides_pass(HOW_FUNCTION);
		while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done = (unsigned)wc.wr_id + 1;
		}
		while (ibv_poll_cq(sides[1].cq, 1, &wc) == 1) {
			const uint8_t *at = sides[1].mem + wc.wr_id * MSG_BYTES;

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, message_len(received));
			for (unsigned i = 0; i < wc.byte_len; i++)
				assert_int_equal(at[i], received % 251);
			received++;
			recv_post(&sides[1], (unsigned)wc.wr_id);
		}
	}
}

/* All mbufs come back, also those that Rocade sends from, which are of the same mempool: app_end() counts
 * them. */
TEST(messages_are_sent)
{
	sides_open();
	messages_pass();
	sides_close();
}

TEST(lost_packets)
{
	struct rocade_impair impair = {.loss_ppm = 50000,
		.duplicate_ppm = 20000,
		.reorder_ppm = 20000,
		.seed = 5};

	sides_open();
	assert_int_equal(rocade_port_impair(sides[1].port, &impair), 0);
	messages_pass();
	assert_in_range(side_stat(&sides[0], "retransmitted"), 1, UINT32_MAX);
	sides_close();
}

static void
expect_refusal(struct ibv_send_wr wr, struct rte_mbuf *m, const char *words)
{
	assert_int_equal(rocade_post_send_mbuf(sides[0].qp, &wr, m), EINVAL);
	if (strstr(rocade_error(), words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", rocade_error(), words);
}

TEST(wrong_use_is_refused)
{
	const struct ibv_send_wr good = {.opcode = IBV_WR_SEND};
	struct ibv_send_wr wr = good;
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct rte_mbuf *m;

	sides_open();
	m = message_make(1, MSG_BYTES);
	wr.opcode = IBV_WR_RDMA_READ;
	expect_refusal(wr, m, "opcode: 4 is not");
	wr = good;
	wr.send_flags = IBV_SEND_INLINE;
	expect_refusal(wr, m, "send_flags: 0x8 has others");
	wr = good;
	wr.num_sge = 1;
	expect_refusal(wr, m, "no SGE and no next");
	wr = good;
	wr.next = &wr;
	expect_refusal(wr, m, "no SGE and no next");
	wr = good;
	m->pkt_len++;
	expect_refusal(wr, m, "pkt_len is not their sum");
	m->pkt_len -= 2;
	expect_refusal(wr, m, "pkt_len is not their sum");
	m->pkt_len++;
	m->nb_segs = 65;
	expect_refusal(wr, m, "more than 64 segments");
	m->nb_segs = 3;
	m->data_off = (uint16_t)(m->buf_len - m->data_len + 1);
	expect_refusal(wr, m, "is longer than its buffer");
	m->data_off = RTE_PKTMBUF_HEADROOM;
	expect_refusal(wr, NULL, "or the mbuf is NULL");
	assert_int_equal(rocade_post_send_mbuf(sides[0].qp, NULL, m), EINVAL);
	assert_int_equal(rocade_post_send_mbuf(NULL, &wr, m), EINVAL);
	m->nb_segs = 3;
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(
			rocade_post_send_mbuf(sides[0].qp, &wr, message_make(i, 10)), 0);
	}
	assert_int_equal(rocade_post_send_mbuf(sides[0].qp, &wr, m), ENOMEM);
	/* Those that were posted are flushed; this one stays the application's. */
	assert_int_equal(ibv_modify_qp(sides[0].qp, &error, IBV_QP_STATE), 0);
	rte_pktmbuf_free(m);
	sides_close();
}

TEST_GROUP(app_start, app_end)
