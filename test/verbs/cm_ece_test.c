/* SPDX-License-Identifier: BSD-3-Clause */
/* Enhanced connection establishment (ECE) over cm.h: the QPs of a connection agree on
 * extensions. The test changes messages before they are sent, for peers that cm.h does not
 * have. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "case.h"
#include "cm/cm_types.h"
#include "verbs/verbs_cm.h"

#include "cm_fixture.h"

/* docs/protocol.md 20.1 */
#define VENDOR 0x02524fu
#define SACK 0x10000001u
#define OTHER_VENDOR 0x15b3u

#define ROUNDS 6 /* of a test. Each has its own QPs: those before it are in time wait */

static struct ibv_qp *qp_a, *qp_b;

static void
round_begin(unsigned i)
{
	qp_a = pair.a.qp[i];
	qp_b = pair.b.qp[i];
}

static int
setup(void **state)
{
	cm_pair_listen(ROUNDS);
	round_begin(0);
	return 0;
}

static struct rocade_cm_id *
connect_request(void)
{
	struct rocade_cm_param p = {
		.size = sizeof(p), .private_data = "hello", .private_len = 5};
	struct rocade_cm_id *id;

	assert_int_equal(
		rocade_cm_connect(cm_a, qp_a, &pair.b.gid, CM_PORT, &p, "a", &id), 0);
	return id;
}

/* Returns the message that the manager of the id has queued last. */
static struct mad *
queued(struct rocade_cm_id *id, uint16_t attr)
{
	struct cm *cm = id->conn->cm;
	struct mad *mad = &cm->out[(cm->out_tail - 1) % CM_TX_QUEUE_LEN].mad;

	assert_int_not_equal(cm->out_tail, cm->out_head);
	assert_int_equal(rte_be_to_cpu_16(mad->attr), attr);
	return mad;
}

static uint32_t
options_of(const struct mad *mad)
{
	return rte_be_to_cpu_32(mad->modifier);
}

static void
expect_req(struct rocade_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	const struct mad *req = queued(id, MAD_REQ);

	assert_int_equal(
		req->data[5] << 16 | req->data[6] << 8 | req->data[7], vendor_id);
	assert_int_equal(options_of(req), options);
}

static void
expect_rep(struct rocade_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	const struct mad *rep = queued(id, MAD_REP);

	assert_int_equal(
		rep->data[15] << 16 | rep->data[19] << 8 | rep->data[23], vendor_id);
	assert_int_equal(options_of(rep), options);
}

static void
rep_change(struct rocade_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	struct mad *rep = queued(id, MAD_REP);

	rep->data[15] = (uint8_t)(vendor_id >> 16);
	rep->data[19] = (uint8_t)(vendor_id >> 8);
	rep->data[23] = (uint8_t)vendor_id;
	rep->modifier = rte_cpu_to_be_32(options);
}

static void
set_options(struct ibv_qp *qp, uint32_t options)
{
	struct ibv_ece ece = {.vendor_id = VENDOR, .options = options};

	assert_int_equal(ibv_set_ece(qp, &ece), 0);
}

static void
expect_agreed(struct ibv_qp *qp, uint32_t options)
{
	struct ibv_ece ece;

	assert_int_equal(ibv_query_ece(qp, &ece), 0);
	assert_int_equal(ece.options, options);
	assert_true(qp->state == IBV_QPS_RTS);
}

static struct rocade_cm_id *
accept_request(void)
{
	struct rocade_cm_id *b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;

	assert_int_equal(rocade_cm_accept(b, qp_b, NULL, "b"), 0);
	return b;
}

/* Both ends report the connection. Ends it. */
static void
expect_connected(struct rocade_cm_id *a, struct rocade_cm_id *b, uint32_t agreed_a,
	uint32_t agreed_b)
{
	assert_ptr_equal(cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED).id, a);
	assert_ptr_equal(cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED).id, b);
	expect_agreed(qp_a, agreed_a);
	expect_agreed(qp_b, agreed_b);
	rocade_cm_release(a);
	cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(b);
	cm_expect_no_event();
}

TEST_WITH(both_ends_agree, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(), *b;

	expect_req(a, VENDOR, SACK);
	b = accept_request();
	expect_rep(b, VENDOR, SACK);
	expect_connected(a, b, SACK, SACK);
}

/* A program can offer less than its QP can use, on each side. */
TEST_WITH(program_offers_nothing, setup, cm_pair_close)
{
	for (unsigned i = 0; i < 2; i++) {
		struct rocade_cm_id *a, *b;

		round_begin(i);
		set_options(i == 0 ? qp_a : qp_b, 0);
		a = connect_request();
		expect_req(a, VENDOR, i == 0 ? 0 : SACK);
		b = accept_request();
		expect_rep(b, VENDOR, 0);
		expect_connected(a, b, 0, 0);
	}
}

/* The REP to a peer of another vendor, or without options, has none. */
TEST_WITH(request_of_another_vendor, setup, cm_pair_close)
{
	static const uint32_t vendors[] = {OTHER_VENDOR, 0};

	for (unsigned i = 0; i < 2; i++) {
		struct rocade_cm_id *a, *b;
		struct mad *req;

		round_begin(i);
		a = connect_request();
		req = queued(a, MAD_REQ);
		req->data[5] = 0;
		req->data[6] = (uint8_t)(vendors[i] >> 8);
		req->data[7] = (uint8_t)vendors[i];
		b = accept_request();
		expect_rep(b, 0, 0);
		expect_connected(a, b, 0, 0);
	}
}

/* Of the options in a REP only those count that the REQ has offered. */
TEST_WITH(reply_with_other_options, setup, cm_pair_close)
{
	static const struct {
		uint32_t offered, vendor_id, options, agreed;
	} rows[] = {
		{SACK, VENDOR, 0x1fffffff, SACK},
		{SACK, VENDOR, 0x20000001, 0},
		{SACK, VENDOR, 0, 0},
		{SACK, OTHER_VENDOR, SACK, 0},
		{SACK, 0, 0, 0},
		{0, VENDOR, SACK, 0},
	};
	static_assert(RTE_DIM(rows) <= ROUNDS, "a round each");

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rocade_cm_id *a, *b;

		round_begin(i);
		set_options(qp_a, rows[i].offered);
		a = connect_request();
		b = accept_request();
		rep_change(b, rows[i].vendor_id, rows[i].options);
		expect_connected(a, b, rows[i].agreed, rows[i].offered);
	}
}

/* Rejects the request with reason 35, as rdma_reject_ece(3) does. */
static void
reject_options(void)
{
	struct rocade_cm_id *b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	struct mad *rej;

	assert_int_equal(rocade_cm_reject(b, NULL, 0), 0);
	rej = queued(b, MAD_REJ);
	assert_int_equal(rej->data[11], CM_REJ_CONSUMER);
	rej->data[11] = 35;
	rocade_cm_release(b);
}

TEST_WITH(rejected_options_are_left_out, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request(), *b;
	struct rocade_cm_event e;

	reject_options();
	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_a, &e), EAGAIN);
	expect_req(a, 0, 0);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_memory_equal(e.private_data, "hello\0", 6);
	b = e.id;
	assert_int_equal(rocade_cm_accept(b, qp_b, NULL, "b"), 0);
	/* The second REQ has offered nothing. */
	rep_change(b, VENDOR, SACK);
	expect_connected(a, b, 0, 0);
}

/* The request is repeated once, and not for another reason. */
TEST_WITH(second_rejection_is_reported, setup, cm_pair_close)
{
	struct rocade_cm_id *a = connect_request();
	struct rocade_cm_event e;

	reject_options();
	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_a, &e), EAGAIN);
	reject_options();
	e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);
	assert_int_equal(e.status, 35);
	assert_ptr_equal(e.id, a);
	rocade_cm_release(a);
	a = connect_request();
	rocade_cm_release(cm_expect_event(cm_b, ROCADE_CM_REQUEST).id);
	assert_int_equal(cm_expect_event(cm_a, ROCADE_CM_REJECTED).status, 28);
	rocade_cm_release(a);
	cm_expect_no_event();
}
