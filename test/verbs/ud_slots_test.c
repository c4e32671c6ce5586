/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread polls and posts datagrams to a short send queue while another one runs the engine: a slot
 * is used again while the burst of its last datagram is still being built. Each datagram leaves with
 * the traffic class of its own address handle. */
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "await.h"
#include "case.h"
#include "verbs_pair.h"

#define QKEY 0x11223344
#define GRH 40
#define IP_TOS 21 /* of an IPv4 header, which is at the end of the GRH */
#define SLOT 2048
#define RECEIVES 64
#define LEN 1024
#define DATAGRAMS 100000
#ifdef __SANITIZE_THREAD__
#define SLOWER 20
#else
#define SLOWER 1
#endif

static const uint8_t classes[] = {0x20, 0x40};
static struct verbs_pair pair;
static struct ibv_qp *tx, *rx;
static struct ibv_ah *ah[2];

static struct ibv_qp *
ud_qp(struct verbs_side *s, uint32_t send_wr)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = {.max_send_wr = send_wr,
			.max_send_sge = 1,
			.max_recv_wr = RECEIVES,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	assert_non_null(qp);
	pair_ud_to_rts(qp, QKEY, 0);
	return qp;
}

/* Posts a datagram; its immediate data is the number of its address handle. Returns false if the
 * queue is full. */
static bool
datagram_post(unsigned to)
{
	struct ibv_sge sge = pair_sge(&pair.a, 0, LEN);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = to,
					 .sg_list = &sge,
					 .num_sge = 1};

	wr.wr.ud.ah = ah[to];
	wr.wr.ud.remote_qpn = rx->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return ibv_post_send(tx, &wr, &bad) == 0;
}

static void
receive_post(uint64_t slot)
{
	struct ibv_sge sge = pair_sge(&pair.b, slot * SLOT, SLOT);
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_recv(rx, &wr, &bad), 0);
}

/* Returns how many have been received. */
static unsigned
datagrams_check(void)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(pair.b.recv_cq, 16, wc);

	for (int i = 0; i < n; i++) {
		const uint8_t *grh = pair.b.mem + wc[i].wr_id * SLOT;

		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(grh[IP_TOS] & 0xfc, classes[wc[i].imm_data]);
		receive_post(wc[i].wr_id);
	}
	return (unsigned)n;
}

static void
each_datagram_has_its_own_address(uint32_t send_wr)
{
	struct await all = {.pauses = 0}, next = all;
	unsigned received = 0, posted = 0, arrived;
	struct ibv_wc wc;

	pair_open(&pair, &(struct verbs_pair_conf){.unconnected = true});
	tx = ud_qp(&pair.a, send_wr);
	rx = ud_qp(&pair.b, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

		attr.grh.dgid = pair.b.gid;
		attr.grh.traffic_class = classes[i];
		ah[i] = ibv_create_ah(pair.a.pd, &attr);
		assert_non_null(ah[i]);
	}
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		receive_post(slot);
	pair_threads_start(&pair);
	while (received < DATAGRAMS / SLOWER && await_goes_on(&all)) {
		while (datagram_post(posted % 3 == 2))
			posted++;
		if (ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1)
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		else
			sched_yield();
		arrived = datagrams_check();
		if (arrived != 0)
			next = (struct await){.pauses = 0};
		assert_true(await_goes_on(&next));
		received += arrived;
	}
	/* On a machine where each takes long, fewer are enough. */
	assert_true(received > 0);
	pair_threads_stop(&pair);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	pair_close(&pair);
}

TEST(queue_of_two)
{
	each_datagram_has_its_own_address(2);
}

TEST(queue_of_four)
{
	each_datagram_has_its_own_address(4);
}
