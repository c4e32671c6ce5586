/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_query_ece(3) and ibv_set_ece(3), as a program calls them that exchanges the options of
 * its QPs with its peer itself, and as librdmacm does. */
#include <errno.h>
#include <stdint.h>

#include "case.h"
#include "xrc_fixture.h"

/* docs/protocol.md 20.1 */
#define VENDOR 0x02524fu
#define SACK 0x10000001u
#define OTHER_VENDOR 0x15b3u

static int
setup(void **state)
{
	pair_open(&pair, &(struct verbs_pair_conf){.unconnected = true});
	return 0;
}

static struct ibv_ece
queried(struct ibv_qp *qp)
{
	struct ibv_ece ece = {.vendor_id = 1, .options = 2, .comp_mask = 3};

	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, VENDOR);
	assert_int_equal(ece.comp_mask, 0);
	return ece;
}

/* Expects that the QP accepts these options of its peer, and agrees on those of `want`. */
static void
set(struct ibv_qp *qp, uint32_t vendor_id, uint32_t options, uint32_t want)
{
	struct ibv_ece ece = {.vendor_id = vendor_id, .options = options};

	assert_int_equal(ibv_set_ece(qp, &ece), 0);
	assert_int_equal(ece.vendor_id, vendor_id);
	assert_int_equal(ece.options, want);
	assert_int_equal(queried(qp).options, want);
}

/* The passive end accepts what the active end offers, and answers what it has accepted. */
TEST_WITH(two_ends_agree, setup, xrc_teardown)
{
	struct ibv_qp *a = pair.a.qp[0], *b = pair.b.qp[0];
	struct ibv_ece offer = queried(a), answer;
	struct ibv_wc wc;

	assert_int_equal(offer.options, SACK);
	pair_to_init(a);
	assert_int_equal(queried(a).options, SACK);
	assert_int_equal(ibv_set_ece(b, &offer), 0);
	pair_to_init(b);
	pair_to_rtr(&pair.conf, b, &pair.a.gid, a->qp_num);
	pair_to_rts(&pair.conf, b);
	answer = queried(b);
	assert_int_equal(answer.options, SACK);
	assert_int_equal(ibv_set_ece(a, &answer), 0);
	pair_to_rtr(&pair.conf, a, &pair.b.gid, b->qp_num);
	pair_to_rts(&pair.conf, a);
	assert_int_equal(queried(a).options, SACK);
	assert_int_equal(pair_post_recv(&pair.b, 0, 1, 4096, 100), 0);
	assert_int_equal(pair_send(&pair.a, 0, 3, 0, 100, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Options of another vendor or version, and bits that are not known, mean nothing. A QP
 * that has agreed on nothing has options of 0, so that librdmacm sends no bit of Rocade's
 * to a peer of another vendor. */
TEST_WITH(foreign_options_agree_on_nothing, setup, xrc_teardown)
{
	static const struct {
		uint32_t vendor_id, options, want;
	} rows[] = {
		{OTHER_VENDOR, SACK, 0},
		{0, 0, 0},
		{0, SACK, 0},
		{VENDOR, 0, 0},
		{VENDOR, 1, 0},
		{VENDOR, 0x20000001, 0},
		{VENDOR, 0x10000000, 0},
		{VENDOR, 0x1ffffffe, 0},
		{VENDOR, 0x1fffffff, SACK},
		{VENDOR | 1u << 24, SACK, 0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set(pair.a.qp[0], VENDOR, SACK, SACK);
		set(pair.a.qp[0], rows[i].vendor_id, rows[i].options, rows[i].want);
	}
}

TEST_WITH(unknown_members_are_refused, setup, xrc_teardown)
{
	struct ibv_ece ece = {.vendor_id = VENDOR, .options = SACK, .comp_mask = 1};

	set(pair.a.qp[0], VENDOR, 0, 0);
	assert_int_equal(ibv_set_ece(pair.a.qp[0], &ece), EINVAL);
	assert_int_equal(ece.options, SACK);
	assert_int_equal(queried(pair.a.qp[0]).options, 0);
}

/* The options may be set in every state; RESET ends the agreement. */
TEST_WITH(reset_ends_the_agreement, setup, xrc_teardown)
{
	struct ibv_qp *qp = pair.a.qp[0];

	set(qp, VENDOR, 0, 0);
	pair_to_init(qp);
	assert_int_equal(queried(qp).options, 0);
	set(qp, VENDOR, SACK, SACK);
	pair_to_rtr(&pair.conf, qp, &pair.b.gid, pair.b.qp[0]->qp_num);
	set(qp, VENDOR, 0, 0);
	pair_to_rts(&pair.conf, qp);
	assert_int_equal(queried(qp).options, 0);
	pair_modify_state(qp, IBV_QPS_ERR);
	assert_int_equal(queried(qp).options, 0);
	pair_modify_state(qp, IBV_QPS_RESET);
	assert_int_equal(queried(qp).options, SACK);
}

TEST_WITH(uc_and_ud_have_no_options, setup, xrc_teardown)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = pair.a.send_cq,
			.recv_cq = pair.a.recv_cq,
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.qp_type = types[i]};
		struct ibv_ece ece = {.vendor_id = VENDOR, .options = SACK};
		struct ibv_qp *qp = ibv_create_qp(pair.a.pd, &attr);

		assert_non_null(qp);
		assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
		ece = (struct ibv_ece){0};
		assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
		/* librdmacm then goes on with the zeros that it had. */
		assert_int_equal(ece.vendor_id, 0);
		assert_int_equal(ece.options, 0);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* The handles of a target have one agreement. */
TEST_WITH(xrc_qps_agree, setup, xrc_teardown)
{
	struct ibv_xrcd *xrcd = xrc_domain(&pair.b);
	struct ibv_qp *target = xrc_target(pair.b.context, xrcd), *again;
	struct ibv_qp *initiator = xrc_initiator(&pair.a, 0);
	struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM |
						     IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target->qp_num,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV};

	assert_int_equal(queried(initiator).options, SACK);
	set(initiator, VENDOR, SACK, SACK);
	assert_int_equal(queried(target).options, SACK);
	set(target, OTHER_VENDOR, SACK, 0);
	again = ibv_open_qp(pair.b.context, &open);
	assert_non_null(again);
	assert_int_equal(queried(again).options, 0);
	assert_int_equal(ibv_destroy_qp(again), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}
