/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast: copies to attached QPs of every engine, replies to the sender, limits. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define QKEY 0x11111111
#define GRH 40
#define QPS 4
#define SLOT 8192
#define ALL_QPNS 0xFFFFFF

static struct verbs_pair pair;
static struct ibv_qp *a[QPS], *b[QPS];
static struct ibv_ah *ah;
static union ibv_gid group;

static struct ibv_qp *
ud_qp(struct verbs_side *s, int engine, uint32_t qkey)
{
	struct ibv_qp_init_attr qps_open = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = {.max_send_wr = 64,
			.max_send_sge = 1,
			.max_recv_wr = 64,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp;

	assert_int_equal(rocade_context_set_engine(s->context, engine), 0);
	qp = ibv_create_qp(s->pd, &qps_open);
	assert_non_null(qp);
	pair_ud_to_rts(qp, qkey, 5);
	return qp;
}

static void
qps_open(unsigned engines, bool ipv6, unsigned srq_wr)
{
	struct verbs_pair_conf conf = {
		.engines = engines, .unconnected = true, .ipv6 = ipv6, .srq_wr = srq_wr};
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	pair_open(&pair, &conf);
	for (unsigned i = 0; i < QPS; i++) {
		a[i] = ud_qp(&pair.a, (int)(i % engines), QKEY);
		b[i] = ud_qp(&pair.b, (int)(i % engines), QKEY);
	}
	assert_int_equal(rocade_gid_parse(ipv6 ? "ff15::4711" : "239.1.2.3", &group), 0);
	attr.grh.dgid = group;
	ah = ibv_create_ah(pair.a.pd, &attr);
	assert_non_null(ah);
	for (unsigned i = 0; i < SLOT; i++)
		pair.a.mem[i] = (uint8_t)(i * 13 + (i >> 7));
}

static void
qps_close(void)
{
	assert_int_equal(ibv_destroy_ah(ah), 0);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(ibv_destroy_qp(a[i]), 0);
		assert_int_equal(ibv_destroy_qp(b[i]), 0);
	}
	pair_close(&pair);
}

static void
receive(struct verbs_side *s, struct ibv_qp *qp, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)s->mem + (slot + 1) * SLOT, SLOT, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(s->srq != NULL ? ibv_post_srq_recv(s->srq, &wr, &bad)
					: ibv_post_recv(qp, &wr, &bad),
		0);
}

static void
send_to_group(struct ibv_qp *qp, uint32_t len, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)pair.a.mem, len, pair.a.mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(len),
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = ALL_QPNS, .remote_qkey = qkey},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void
expect_copy(const struct verbs_side *s, const struct ibv_wc *wc, uint32_t len)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->byte_len, GRH + len);
	assert_int_equal(wc->src_qp, a[0]->qp_num);
	assert_true(wc->wc_flags & IBV_WC_GRH);
	assert_int_equal(ntohl(wc->imm_data), len);
	assert_memory_equal(s->mem + (wc->wr_id + 1) * SLOT + GRH, pair.a.mem, len);
}

/* QPs 0, 1 and 2 of each side are attached, and QP 0 of a sends: all of them but the
 * sender get a copy. */
static void
copies(unsigned engines, bool ipv6)
{
	static const uint32_t lens[] = {0, 1, 63, 1024, 4096};

	qps_open(engines, ipv6, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ibv_attach_mcast(a[i], &group, 0), 0);
		assert_int_equal(ibv_attach_mcast(b[i], &group, 0xC000), 0);
	}
	for (unsigned l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
		unsigned from_a = 0, from_b = 0;
		struct ibv_wc wc[3];

		for (unsigned i = 0; i < QPS; i++) {
			receive(&pair.a, a[i], i);
			receive(&pair.b, b[i], i);
		}
		send_to_group(a[0], lens[l], QKEY);
		pair_poll_cq(&pair, pair.b.recv_cq, wc, 3);
		for (unsigned i = 0; i < 3; i++) {
			expect_copy(&pair.b, &wc[i], lens[l]);
			from_b |= 1u << wc[i].wr_id;
		}
		pair_poll_cq(&pair, pair.a.recv_cq, wc, 2);
		for (unsigned i = 0; i < 2; i++) {
			expect_copy(&pair.a, &wc[i], lens[l]);
			from_a |= 1u << wc[i].wr_id;
		}
		assert_int_equal(from_b, 7);
		assert_int_equal(from_a, 6);
		pair_no_completion(&pair, pair.a.recv_cq);
		pair_no_completion(&pair, pair.b.recv_cq);
		/* Flush the receives that got nothing, and start again. */
		for (unsigned i = 0; i < QPS; i++) {
			pair_modify_state(a[i], IBV_QPS_ERR);
			pair_modify_state(b[i], IBV_QPS_ERR);
		}
		pair_drain(&pair);
		while (ibv_poll_cq(pair.a.recv_cq, 1, wc) > 0 ||
			ibv_poll_cq(pair.b.recv_cq, 1, wc) > 0)
			;
		if (l + 1 == sizeof(lens) / sizeof(lens[0]))
			break;
		for (unsigned i = 0; i < QPS; i++) {
			if (i < 3) {
				assert_int_equal(ibv_detach_mcast(a[i], &group, 0), 0);
				assert_int_equal(ibv_detach_mcast(b[i], &group, 0), 0);
			}
			assert_int_equal(ibv_destroy_qp(a[i]), 0);
			assert_int_equal(ibv_destroy_qp(b[i]), 0);
			a[i] = ud_qp(&pair.a, (int)(i % engines), QKEY);
			b[i] = ud_qp(&pair.b, (int)(i % engines), QKEY);
			if (i < 3) {
				assert_int_equal(ibv_attach_mcast(a[i], &group, 0), 0);
				assert_int_equal(ibv_attach_mcast(b[i], &group, 0), 0);
			}
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ibv_detach_mcast(a[i], &group, 0), 0);
		assert_int_equal(ibv_detach_mcast(b[i], &group, 0), 0);
	}
	qps_close();
}

TEST(attached_qps_but_sender_get_a_copy)
{
	copies(1, false);
	copies(1, true);
	copies(2, false);
	copies(3, true);
}

/* Each attached QP consumes one receive of the shared SRQ. */
TEST(attached_qps_share_an_srq)
{
	struct ibv_wc wc[QPS];

	qps_open(2, false, 16);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(ibv_attach_mcast(b[i], &group, 0), 0);
		receive(&pair.b, NULL, i);
	}
	send_to_group(a[0], 500, QKEY);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, QPS);
	for (unsigned i = 0; i < QPS; i++)
		expect_copy(&pair.b, &wc[i], 500);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(ibv_detach_mcast(b[i], &group, 0), 0);
	qps_close();
}

TEST(attach_and_detach_arguments)
{
	struct ibv_qp *rc;
	union ibv_gid other;

	qps_open(1, false, 0);
	rc = pair_qp_create(&pair.conf, &pair.b, 0);
	assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(b[0], &pair.b.gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(b[0], &group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(b[0], &group, 0), 0);
	/* attaching twice is allowed */
	assert_int_equal(ibv_attach_mcast(b[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(b[1], &group, 0), EINVAL);
	assert_int_equal(rocade_gid_parse("239.1.2.4", &other), 0);
	assert_int_equal(ibv_detach_mcast(b[0], &other, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(b[0]), EBUSY);
	assert_int_equal(ibv_detach_mcast(b[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(b[0], &group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	qps_close();
}

static uint64_t
qp_stat(struct ibv_qp *qp, const char *name)
{
	struct rocade_stat rows[64];
	unsigned n = rocade_qp_stats(qp, rows, 64);

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

/* Datagrams to a group without attached QPs, and with another Q_Key, are counted as
 * drops. A QP attached twice gets one copy. */
TEST(undeliverable_copies_are_counted)
{
	struct ibv_wc wc;
	struct ibv_qp *odd;

	qps_open(2, false, 0);
	odd = ud_qp(&pair.b, 0, QKEY + 1);
	receive(&pair.b, b[0], 0);
	receive(&pair.b, odd, 1);
	send_to_group(a[0], 10, QKEY);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_group"), 1);
	assert_int_equal(ibv_attach_mcast(b[0], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(b[0], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(odd, &group, 0), 0);
	send_to_group(a[0], 10, QKEY);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	expect_copy(&pair.b, &wc, 10);
	assert_int_equal(wc.qp_num, b[0]->qp_num);
	receive(&pair.b, b[0], 2);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_qkey"), 1);
	assert_int_equal(qp_stat(b[0], "rx_packets"), 1);
	/* A QP without a receive loses its copy; the other QP gets its own. */
	assert_int_equal(ibv_attach_mcast(b[1], &group, 0), 0);
	send_to_group(a[0], 12, QKEY);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	expect_copy(&pair.b, &wc, 12);
	pair_no_completion(&pair, pair.b.recv_cq);
	assert_int_equal(pair_stat(&pair.b, "drop_no_receive"), 1);
	assert_int_equal(ibv_detach_mcast(b[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(b[1], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(odd, &group, 0), 0);
	assert_int_equal(ibv_destroy_qp(odd), 0);
	qps_close();
}

/* The reply to a multicast datagram uses the local address in the sender's network. */
static void
answer(bool ipv6)
{
	struct ibv_ah_attr attr;
	union ibv_gid own;
	struct ibv_wc wc;

	qps_open(1, ipv6, 0);
	assert_int_equal(ibv_attach_mcast(b[0], &group, 0), 0);
	receive(&pair.b, b[0], 0);
	send_to_group(a[0], 10, QKEY);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(ibv_init_ah_from_wc(pair.b.context, 1, &wc,
				 (struct ibv_grh *)(pair.b.mem + SLOT), &attr),
		0);
	assert_memory_equal(&attr.grh.dgid, &pair.a.gid, sizeof(pair.a.gid));
	assert_int_equal(ibv_query_gid(pair.b.context, 1, attr.grh.sgid_index, &own), 0);
	assert_memory_equal(&own, &pair.b.gid, sizeof(own));
	assert_int_equal(ibv_detach_mcast(b[0], &group, 0), 0);
	qps_close();
}

TEST(reply_uses_address_in_senders_network)
{
	answer(false);
	answer(true);
}

/* The limit of groups is exactly the one that the device reports. */
TEST(group_limit_is_the_reported_one)
{
	struct ibv_device_attr attr;
	union ibv_gid gid = group;

	qps_open(1, false, 0);
	gid = group;
	assert_int_equal(ibv_query_device(pair.b.context, &attr), 0);
	assert_true(attr.max_mcast_grp >= 256 && attr.max_mcast_grp < 65536);
	assert_true(attr.max_mcast_qp_attach > 0);
	assert_true(attr.max_total_mcast_qp_attach >= attr.max_mcast_grp);
	for (int i = 0; i <= attr.max_mcast_grp; i++) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		assert_int_equal(ibv_attach_mcast(b[0], &gid, 0),
			i < attr.max_mcast_grp ? 0 : ENOMEM);
	}
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		assert_int_equal(ibv_detach_mcast(b[0], &gid, 0), 0);
	}
	qps_close();
}
