/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in mbufs of an application (rocade/mbuf.h), over net_memif. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include <rocade/mbuf.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define MESSAGES 500
#define KEPT 100 /* messages that the application keeps */

static struct rte_mempool *copies;
static struct rocade_srq_mbufs mbufs = {.size = sizeof(mbufs), .max_message = 4096};
static unsigned posted, done, received;
static struct await passing;

static int
start(void **state)
{
	int rc = app_start(state);

	if (rc == 0) {
		copies = rte_pktmbuf_pool_create(
			"copies", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
		mbufs.pool = copies;
	}
	return rc != 0 || copies == NULL ? -1 : 0;
}

static void
sides_open(enum how how)
{
	sides[1].mbufs = &mbufs;
	for (unsigned i = 0; i < 2; i++)
		side_open(&sides[i], how);
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
	for (unsigned i = 0; i < DEPTH; i++)
		recv_post(&sides[1], i);
	posted = done = received = 0;
	passing = (struct await){.pauses = 0};
}

static void
sides_close(void)
{
	side_close(&sides[0]);
	side_close(&sides[1]);
	sides[1].mbufs = NULL;
	assert_int_equal(rte_mempool_in_use_count(copies), 0);
}

/* Message `number`, 3 packets of 1024 bytes at most. */
static void
message_check(const struct rte_mbuf *m, unsigned number)
{
	assert_non_null(m);
	rte_mbuf_sanity_check(m, 1);
	assert_int_equal(m->pkt_len, MSG_BYTES);
	assert_int_equal(m->nb_segs, 3);
	for (; m != NULL; m = m->next) {
		const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

		for (unsigned i = 0; i < m->data_len; i++)
			assert_int_equal(at[i], number % 251);
	}
}

/* Passes until `until` messages have arrived and completed; the first `keep` are put into kept. */
static void
messages_pass(enum how how, unsigned until, struct rte_mbuf **kept, unsigned keep)
{
	struct ibv_wc wc;

	while (received < until || done < until) {
		assert_true(await_goes_on(&passing));
		while (posted < until && posted - done < DEPTH)
			send_post(&sides[0], posted++);
		sides_pass(how);
		while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		while (ibv_poll_cq(sides[1].cq, 1, &wc) == 1) {
			struct rte_mbuf *m = rocade_wc_mbuf(&wc);

			assert_int_equal(wc.byte_len, MSG_BYTES);
			message_check(m, received);
			if (received < keep)
				kept[received] = m;
			else
				rte_pktmbuf_free(m);
			received++;
			recv_post(&sides[1], 0);
		}
	}
}

/* The frames of the application's mempool are given away, and are its own also when the port has gone. */
TEST(messages_are_handed_over)
{
	struct rte_mbuf *kept[KEPT];

	for (enum how how = HOW_FRAMES; how <= HOW_QUEUES; how++) {
		sides_open(how);
		messages_pass(how, MESSAGES, kept, KEPT);
		assert_int_equal(side_stat(&sides[1], "mbufs_handed"), 3 * MESSAGES);
		assert_int_equal(side_stat(&sides[1], "mbufs_copied"), 0);
		assert_int_equal(side_stat(&sides[1], "mbufs_missing"), 0);
		assert_int_equal(side_stat(&sides[1], "direct_place_missed"), 0);
		for (unsigned i = 0; i < KEPT; i++) {
			message_check(kept[i], i);
			assert_ptr_equal(kept[i]->pool, pool);
		}
		sides_close();
		for (unsigned i = 0; i < KEPT; i++) {
			message_check(kept[i], i);
			rte_pktmbuf_free(kept[i]);
		}
	}
}

/* Packets behind a lost one are held, and so copied. The mempool for copies is small: some find no
 * buffer there. */
TEST(lost_packets)
{
	struct rocade_impair impair = {.loss_ppm = 50000,
		.duplicate_ppm = 20000,
		.reorder_ppm = 20000,
		.seed = 3};
	struct rte_mbuf *kept[KEPT];

	sides_open(HOW_FRAMES);
	assert_int_equal(rocade_port_impair(sides[1].port, &impair), 0);
	messages_pass(HOW_FRAMES, MESSAGES, kept, KEPT);
	assert_int_equal(side_stat(&sides[1], "mbufs_handed") +
				 side_stat(&sides[1], "mbufs_copied"),
		3 * MESSAGES);
	assert_in_range(side_stat(&sides[1], "mbufs_copied"), 1, 3 * MESSAGES);
	for (unsigned i = 0; i < KEPT; i++) {
		message_check(kept[i], i);
		rte_pktmbuf_free(kept[i]);
	}
	sides_close();
}

/* The application keeps all that it gets: its mempool of frames comes down to the reserve, then that
 * for copies is used up. The peer waits, and nothing is lost. */
TEST(kept_messages)
{
	static struct rte_mbuf *kept[8192];
	unsigned most = RTE_DIM(kept), n;

	sides_open(HOW_FRAMES);
	while (side_stat(&sides[1], "mbufs_missing") == 0) {
		struct ibv_wc wc;

		assert_true(await_goes_on(&passing));
		while (posted < most && posted - done < DEPTH)
			send_post(&sides[0], posted++);
		sides_pass(HOW_FRAMES);
		while (ibv_poll_cq(sides[0].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		while (received < most && ibv_poll_cq(sides[1].cq, 1, &wc) == 1) {
			kept[received++] = rocade_wc_mbuf(&wc);
			recv_post(&sides[1], 0);
		}
	}
	assert_int_equal(rte_mempool_avail_count(copies), 0);
	/* The reserve, less what was given away since it was counted, more what was under way. */
	assert_in_range(rte_mempool_avail_count(pool), 128, 512);
	for (n = 0; n < received; n++)
		rte_pktmbuf_free(kept[n]);
	/* Of later messages the packets are handed over again. */
	messages_pass(HOW_FRAMES, posted, NULL, 0);
	assert_int_equal(side_stat(&sides[0], "ack_timeouts"), 0);
	sides_close();
}

static void
expect_refusal(struct ibv_srq *srq, const struct rocade_srq_mbufs *conf, int err,
	const char *words)
{
	assert_int_equal(rocade_srq_set_mbufs(srq, conf), err);
	if (strstr(rocade_error(), words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", rocade_error(), words);
}

/* Of a port whose frames are no mbufs. */
static void
loop_is_refused(void)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[0]), .addresses = "192.0.2.2/24"}};
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_context *context;
	struct rocade_port *loop[2];
	struct ibv_srq *srq;
	struct ibv_pd *pd;

	assert_int_equal(rocade_open_loop(conf, loop), 0);
	context = ibv_open_device(rocade_port_device(loop[0]));
	pd = ibv_alloc_pd(context);
	srq = ibv_create_srq(pd, &attr);
	assert_non_null(srq);
	expect_refusal(srq, &mbufs, EOPNOTSUPP, "are no mbufs");
	ibv_destroy_srq(srq);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	assert_int_equal(rocade_close_port(loop[0]), 0);
	assert_int_equal(rocade_close_port(loop[1]), 0);
}

TEST(wrong_use_is_refused)
{
	struct rte_mempool *small = rte_pktmbuf_pool_create(
		"small", 63, 0, 0, RTE_PKTMBUF_HEADROOM + 1023, 0);
	struct rte_mempool *plain =
		rte_mempool_create("plain", 63, 64, 0, 0, NULL, NULL, NULL, NULL, 0, 0);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_sge sge = {.length = 0};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct rocade_srq_mbufs conf = mbufs;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD};
	struct ibv_srq *srq;

	loop_is_refused();
	side_open(&sides[0], HOW_FRAMES);
	srq = ibv_create_srq(sides[0].pd, &attr);
	assert_non_null(srq);
	expect_refusal(srq, NULL, EINVAL, "no configuration of the mbufs");
	expect_refusal(NULL, &conf, EINVAL, "not of a Rocade device");
	conf.size = 8;
	expect_refusal(srq, &conf, EINVAL, "size: 8 is not sizeof");
	conf.size = sizeof(conf);
	conf.pool = NULL;
	expect_refusal(srq, &conf, EINVAL, "pool: no mempool");
	conf.pool = plain;
	expect_refusal(srq, &conf, EINVAL, "pool: it is not one of");
	conf.pool = small;
	expect_refusal(srq, &conf, EINVAL, "pool: its buffers have room for 1023 bytes");
	conf.pool = copies;
	conf.max_message = 0;
	expect_refusal(srq, &conf, EINVAL, "max_message: 0 is not in 1..8388608");
	conf.max_message = 8388609;
	expect_refusal(srq, &conf, EINVAL, "max_message: 8388609 is not in");
	conf.max_message = 8388608;
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	expect_refusal(srq, &conf, EBUSY, "posted receives");
	ibv_destroy_srq(srq);

	srq = ibv_create_srq(sides[0].pd, &attr);
	assert_int_equal(rocade_srq_set_mbufs(srq, &conf), 0);
	/* Its receives have no SGEs, and its QPs are RC. */
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &attr.attr), 0);
	assert_int_equal(attr.attr.max_sge, 0);
	init.send_cq = init.recv_cq = sides[0].cq;
	init.srq = srq;
	assert_null(ibv_create_qp(sides[0].pd, &init));
	assert_int_equal(errno, EINVAL);
	ibv_destroy_srq(srq);
	side_close(&sides[0]);
	rte_mempool_free(small);
	rte_mempool_free(plain);
}

/* The QP is destroyed with messages that are not complete, or not polled. */
TEST(destroyed_qp)
{
	struct ibv_wc wc;

	sides_open(HOW_FRAMES);
	messages_pass(HOW_FRAMES, 1, NULL, 0);
	for (unsigned i = 0; i < 8; i++)
		send_post(&sides[0], posted++);
	await_by(sides_pass(HOW_FRAMES), side_stat(&sides[1], "mbufs_handed") > 10);
	assert_int_equal(ibv_poll_cq(sides[1].cq, 1, &wc), 1);
	message_check(rocade_wc_mbuf(&wc), 1);
	rte_pktmbuf_free(rocade_wc_mbuf(&wc));
	sides_close(); /* app_end() counts what is left */
}

TEST_GROUP(start, app_end)
