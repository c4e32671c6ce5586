/* SPDX-License-Identifier: BSD-3-Clause */
/* The state table is compared with a second one, written after the man page, for every
 * mask of attributes (IBA 11.2.5.2; docs/protocol.md 13.2). Attributes that are neither
 * required nor optional are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "qp_link.h"

#define KNOWN_BITS 21 /* IBV_QP_STATE .. IBV_QP_DEST_QPN */

static const struct {
	const char *name;
	int bit;
} names[] = {
	{"pkey", IBV_QP_PKEY_INDEX},
	{"port", IBV_QP_PORT},
	{"access", IBV_QP_ACCESS_FLAGS},
	{"av", IBV_QP_AV},
	{"mtu", IBV_QP_PATH_MTU},
	{"dest", IBV_QP_DEST_QPN},
	{"rq_psn", IBV_QP_RQ_PSN},
	{"max_dest", IBV_QP_MAX_DEST_RD_ATOMIC},
	{"min_rnr", IBV_QP_MIN_RNR_TIMER},
	{"sq_psn", IBV_QP_SQ_PSN},
	{"timeout", IBV_QP_TIMEOUT},
	{"retry", IBV_QP_RETRY_CNT},
	{"rnr_retry", IBV_QP_RNR_RETRY},
	{"max_rd", IBV_QP_MAX_QP_RD_ATOMIC},
	{"cur", IBV_QP_CUR_STATE},
	{"notify", IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{"qkey", IBV_QP_QKEY},
};

struct wanted {
	const char *from, *to, *required, *optional;
};

static const struct wanted rc_wanted[] = {
	{"reset", "init", "pkey port access", ""},
	{"init", "init", "", "pkey port access"},
	{"init", "rtr", "av mtu dest rq_psn max_dest min_rnr", "access pkey"},
	{"rtr", "rts", "sq_psn timeout retry rnr_retry max_rd", "cur access min_rnr"},
	{"rts", "rts", "", "cur access min_rnr"},
	{"rts", "sqd", "", "notify"},
	{"sqd", "rts", "", "cur access min_rnr"},
	{"sqd", "sqd", "",
		"port av timeout retry rnr_retry max_rd max_dest access pkey min_rnr"},
};

static const struct wanted uc_wanted[] = {
	{"reset", "init", "pkey port access", ""},
	{"init", "init", "", "pkey port access"},
	{"init", "rtr", "av mtu dest rq_psn", "access pkey"},
	{"rtr", "rts", "sq_psn", "cur access"},
	{"rts", "rts", "", "cur access"},
	{"rts", "sqd", "", "notify"},
	{"sqd", "rts", "", "cur access"},
	{"sqd", "sqd", "", "av access pkey"},
	{"sqe", "rts", "", "cur access"},
};

static const struct wanted ud_wanted[] = {
	{"reset", "init", "pkey port qkey", ""},
	{"init", "init", "", "pkey port qkey"},
	{"init", "rtr", "", "pkey qkey"},
	{"rtr", "rts", "sq_psn", "cur qkey"},
	{"rts", "rts", "", "cur qkey"},
	{"rts", "sqd", "", "notify"},
	{"sqd", "rts", "", "cur qkey"},
	{"sqd", "sqd", "", "pkey qkey"},
	{"sqe", "rts", "", "cur qkey"},
};

static const struct wanted xrc_send_wanted[] = {
	{"reset", "init", "pkey port access", ""},
	{"init", "init", "", "pkey port access"},
	{"init", "rtr", "av mtu dest rq_psn", "access pkey"},
	{"rtr", "rts", "sq_psn timeout retry rnr_retry max_rd", "cur access"},
	{"rts", "rts", "", "cur access"},
	{"rts", "sqd", "", "notify"},
	{"sqd", "rts", "", "cur access"},
	{"sqd", "sqd", "", "port av timeout retry rnr_retry max_rd access pkey"},
};

static const struct wanted xrc_recv_wanted[] = {
	{"reset", "init", "pkey port access", ""},
	{"init", "init", "", "pkey port access"},
	{"init", "rtr", "av mtu dest rq_psn max_dest min_rnr", "access pkey"},
	{"rtr", "rts", "sq_psn timeout", "cur access min_rnr"},
	{"rts", "rts", "", "cur access min_rnr"},
	{"rts", "sqd", "", "notify"},
	{"sqd", "rts", "", "cur access min_rnr"},
	{"sqd", "sqd", "", "port av timeout max_dest access pkey min_rnr"},
};

/* The table of the QP type under test. */
static enum ibv_qp_type type;
static const struct wanted *wanted;
static unsigned wanted_count;

static const char *const state_names[] = {
	[IBV_QPS_RESET] = "reset",
	[IBV_QPS_INIT] = "init",
	[IBV_QPS_RTR] = "rtr",
	[IBV_QPS_RTS] = "rts",
	[IBV_QPS_SQD] = "sqd",
	[IBV_QPS_SQE] = "sqe",
	[IBV_QPS_ERR] = "err",
};

static int
bits_of(const char *words)
{
	char copy[128], *save = NULL;
	int bits = 0;

	strcpy(copy, words);
	for (char *w = strtok_r(copy, " ", &save); w != NULL;
		w = strtok_r(NULL, " ", &save)) {
		int before = bits;

		for (unsigned i = 0; i < RTE_DIM(names); i++)
			bits |= strcmp(names[i].name, w) == 0 ? names[i].bit : 0;
		assert_int_not_equal(bits, before);
	}
	return bits;
}

/* Returns the row of a pair of states, or -1. */
static int
row_of(unsigned from, unsigned to)
{
	for (unsigned i = 0; i < wanted_count; i++) {
		if (strcmp(wanted[i].from, state_names[from]) == 0 &&
			strcmp(wanted[i].to, state_names[to]) == 0)
			return (int)i;
	}
	return -1;
}

static void
expect_verdict(unsigned from, unsigned to, int mask, bool good)
{
	int rc = qp_transition_check(
		type, (enum ibv_qp_state)from, (enum ibv_qp_state)to, mask);

	if (rc == (good ? 0 : -EINVAL))
		return;
	fail_msg("%s -> %s, mask %#x: %d", state_names[from], state_names[to],
		(unsigned)mask, rc);
}

/* Tries every mask of known bits. */
static void
masks_of_row(unsigned from, unsigned to, int row)
{
	int required = bits_of(wanted[row].required);
	int optional = bits_of(wanted[row].optional);

	for (int mask = 0; mask < 1 << KNOWN_BITS; mask++) {
		int given = mask & ~IBV_QP_STATE;

		expect_verdict(from, to, mask,
			(given & required) == required &&
				(given & ~(required | optional)) == 0);
	}
	for (int bit = KNOWN_BITS; bit < 31; bit++)
		expect_verdict(from, to, required | 1 << bit, false);
}

/* A pair of states without a row: no mask is allowed, or the state alone for RESET and
 * ERR. */
static void
masks_without_row(unsigned from, unsigned to, uint64_t *seed)
{
	bool bare = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET);

	for (unsigned i = 0; i < 20000; i++) {
		int mask = (int)rand_below(seed, 1u << KNOWN_BITS);

		expect_verdict(from, to, mask, bare && mask == IBV_QP_STATE);
	}
	for (int bit = 0; bit < 31; bit++) {
		expect_verdict(from, to, 1 << bit, bare && 1 << bit == IBV_QP_STATE);
		expect_verdict(from, to, IBV_QP_STATE | 1 << bit, bare && bit == 0);
	}
	expect_verdict(from, to, 0, false);
	for (unsigned i = 0; i < wanted_count; i++)
		expect_verdict(from, to, IBV_QP_STATE | bits_of(wanted[i].required),
			bare && bits_of(wanted[i].required) == 0);
}

static void
masks_check(enum ibv_qp_type of, const struct wanted *rows_wanted, unsigned count)
{
	uint64_t seed = 1;
	unsigned rows = 0;

	type = of;
	wanted = rows_wanted;
	wanted_count = count;
	for (unsigned from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
		for (unsigned to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			int row = row_of(from, to);

			if (row >= 0)
				masks_of_row(from, to, row);
			else
				masks_without_row(from, to, &seed);
			rows += row >= 0;
		}
	}
	assert_int_equal(rows, wanted_count);
}

TEST(rc_transitions)
{
	masks_check(IBV_QPT_RC, rc_wanted, RTE_DIM(rc_wanted));
}

TEST(uc_transitions)
{
	masks_check(IBV_QPT_UC, uc_wanted, RTE_DIM(uc_wanted));
}

TEST(ud_transitions)
{
	masks_check(IBV_QPT_UD, ud_wanted, RTE_DIM(ud_wanted));
}

TEST(xrc_transitions)
{
	masks_check(IBV_QPT_XRC_SEND, xrc_send_wanted, RTE_DIM(xrc_send_wanted));
	masks_check(IBV_QPT_XRC_RECV, xrc_recv_wanted, RTE_DIM(xrc_recv_wanted));
}

/* ---- qp_modify() ---- */

static struct qp_link p;

static bool
mask_allowed(unsigned from, unsigned to, int mask)
{
	int row = row_of(from, to), given = mask & ~IBV_QP_STATE, required;

	if (mask == 0)
		return true; /* an empty mask does nothing */
	if (row < 0)
		return mask == IBV_QP_STATE &&
		       (to == IBV_QPS_RESET ||
			       (to == IBV_QPS_ERR && from != IBV_QPS_RESET));
	required = bits_of(wanted[row].required);
	return (given & required) == required &&
	       (given & ~(required | bits_of(wanted[row].optional))) == 0;
}

static void
host_modify_to(struct host *h, unsigned state)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	static const int masks[] = {MASK_INIT, MASK_RTR, MASK_RTS};
	struct qp_attr attr = host_attr(h);

	for (unsigned i = 0; i < 3 && state > i; i++) {
		attr.state = way[i];
		assert_int_equal(
			qp_modify(&h->qp, &attr, host_mask(h, masks[i]), IBV_MTU_4096),
			0);
	}
	if (state == IBV_QPS_SQE)
		h->qp.state = IBV_QPS_SQE; /* only an error moves a QP there */
	else if (state > IBV_QPS_RTS)
		assert_int_equal(host_modify(h, (enum ibv_qp_state)state), 0);
	assert_int_equal(qp_state(&h->qp), state);
}

static struct host *
host_in(unsigned state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct host *h = type == IBV_QPT_XRC_RECV ? &p.b : &p.a;

	conf.type = type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND : type;
	conf.unconnected = true;
	conf.mem_bytes = 64;
	qp_link_init(&p, &conf);
	host_modify_to(h, state);
	return h;
}

static void
host_done(struct host *h)
{
	struct event_record event;

	while (event_next(&h->events, &event) == 0)
		; /* SQ_DRAINED, LAST_WQE_REACHED */
	qp_link_fini(&p);
}

/* Calls qp_modify() once with valid values. The result must be that of the table, and a
 * refused call must change nothing. */
static bool
modify_try(struct host *h, unsigned from, unsigned to, int mask)
{
	static struct qp before;
	struct qp_attr attr = host_attr(h);
	bool good = mask_allowed(from, mask & IBV_QP_STATE ? to : from, mask);

	attr.state = (enum ibv_qp_state)to;
	attr.cur_state = (enum ibv_qp_state)from;
	attr.en_sqd_async_notify = true;
	memcpy(&before, &h->qp, sizeof(before));
	if (qp_modify(&h->qp, &attr, mask, IBV_MTU_4096) != (good ? 0 : -EINVAL))
		fail_msg("type %d, %s -> %s, mask %#x", (int)type, state_names[from],
			state_names[to], (unsigned)mask);
	if (!good)
		assert_memory_equal(&before, &h->qp, sizeof(before));
	else if (mask & IBV_QP_STATE)
		assert_int_equal(qp_state(&h->qp), to);
	return good;
}

/* Tries each pair of states with the required attributes, then with the optional ones
 * too, and with each single bit of both flipped. */
static unsigned
modify_each_mask(unsigned from, unsigned to)
{
	int row = row_of(from, to);
	int required = IBV_QP_STATE | (row < 0 ? 0 : bits_of(wanted[row].required));
	int both[2] = {
		required, required | (row < 0 ? 0 : bits_of(wanted[row].optional))};
	struct host *h = host_in(from);
	unsigned passed = 0;

	for (unsigned i = 0; i < 2; i++) {
		for (int bit = -1; bit < KNOWN_BITS; bit++) {
			int mask = bit < 0 ? both[i] : both[i] ^ 1 << bit;

			if (!modify_try(h, from, to, mask))
				continue;
			passed++;
			host_done(h);
			h = host_in(from);
		}
	}
	host_done(h);
	return passed;
}

TEST(modify_follows_table)
{
	static const struct {
		enum ibv_qp_type type;
		const struct wanted *rows;
		unsigned count;
		bool sqe; /* the type has the state SQE */
	} types[] = {
		{IBV_QPT_RC, rc_wanted, RTE_DIM(rc_wanted), false},
		{IBV_QPT_UC, uc_wanted, RTE_DIM(uc_wanted), true},
		{IBV_QPT_UD, ud_wanted, RTE_DIM(ud_wanted), true},
		{IBV_QPT_XRC_SEND, xrc_send_wanted, RTE_DIM(xrc_send_wanted), false},
		{IBV_QPT_XRC_RECV, xrc_recv_wanted, RTE_DIM(xrc_recv_wanted), false},
	};
	unsigned passed = 0;

	for (unsigned i = 0; i < RTE_DIM(types); i++) {
		type = types[i].type;
		wanted = types[i].rows;
		wanted_count = types[i].count;
		for (unsigned from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
			if (from == IBV_QPS_SQE && !types[i].sqe)
				continue;
			for (unsigned to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++)
				passed += modify_each_mask(from, to);
		}
	}
	assert_true(passed > 500);
}

/* Other types have no rows. Invalid states have no transitions. */
TEST(unknown_types_and_states)
{
	wanted = rc_wanted;
	wanted_count = RTE_DIM(rc_wanted);
	for (unsigned i = 0; i < wanted_count; i++) {
		int mask = IBV_QP_STATE | bits_of(wanted[i].required);

		for (unsigned from = 0; from < 16; from++) {
			assert_int_equal(
				qp_transition_check(IBV_QPT_RAW_PACKET,
					(enum ibv_qp_state)from, IBV_QPS_RTS, mask),
				-EINVAL);
			assert_int_equal(
				qp_transition_check(IBV_QPT_RC, (enum ibv_qp_state)from,
					(enum ibv_qp_state)(from | 8), mask),
				-EINVAL);
		}
	}
}
