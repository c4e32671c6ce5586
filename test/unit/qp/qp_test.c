/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_init() and qp_fini(), the QPN table, and the memory of an idle QP. */
#include <errno.h>

#include "base/slab.h"
#include "qp/qp_table.h"
#include "qp_link.h"

static size_t mem_used;
static unsigned mem_fail_at; /* number of the allocation that fails, from 1; 0: none */

static void *
failing_get(void *ctx, const char *name, size_t len)
{
	(void)ctx;
	if (mem_fail_at != 0 && --mem_fail_at == 0)
		return NULL;
	mem_used += len;
	return alloc_get(&alloc_plain, name, len);
}

static void
failing_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	mem_used -= len;
	alloc_put(&alloc_plain, mem, len);
}

static const struct alloc failing = {.get = failing_get, .put = failing_put};

static struct cq cq;
static struct srq srq;
static struct qp qp;

static struct qp_conf
conf_good(void)
{
	return (struct qp_conf){
		.type = IBV_QPT_RC,
		.send_cq = &cq,
		.recv_cq = &cq,
		.max_send_wr = 16,
		.max_send_sge = 2,
		.max_recv_wr = 16,
		.max_recv_sge = 2,
	};
}

TEST(invalid_configuration_is_refused)
{
	struct qp_conf conf;

#define REFUSE(field, value, rc)                                                         \
	do {                                                                             \
		conf = conf_good();                                                      \
		conf.field = value;                                                      \
		assert_int_equal(qp_init(&qp, 2, &conf, &failing, NULL, NULL), rc);      \
		assert_int_equal(mem_used, 0);                                           \
	} while (0)
	REFUSE(type, IBV_QPT_XRC_RECV, -EINVAL); /* no XRC domain */
	REFUSE(type, IBV_QPT_RAW_PACKET, -EOPNOTSUPP);
	REFUSE(type, IBV_QPT_DRIVER, -EOPNOTSUPP);
	REFUSE(send_cq, NULL, -EINVAL);
	REFUSE(recv_cq, NULL, -EINVAL);
	REFUSE(max_send_wr, SQ_MAX_WR + 1, -EINVAL);
	REFUSE(max_send_sge, SEND_MAX_SGE + 1, -EINVAL);
	REFUSE(max_inline, SEND_MAX_INLINE + 1, -EINVAL);
	REFUSE(max_recv_wr, SQ_MAX_WR + 1, -EINVAL);
	REFUSE(max_recv_sge, RECV_MAX_SGE + 1, -EINVAL);
	REFUSE(max_send_wr, UINT32_MAX, -EINVAL);
#undef REFUSE
	/* With an SRQ the sizes of the RQ are ignored. Queues of size 0 are legal. */
	conf = conf_good();
	conf.srq = &srq;
	conf.max_recv_wr = conf.max_recv_sge = UINT32_MAX;
	conf.max_send_wr = conf.max_send_sge = 0;
	assert_int_equal(qp_init(&qp, 2, &conf, &failing, NULL, NULL), 0);
	assert_null(qp.rq);
	assert_int_equal(qp_state(&qp), IBV_QPS_RESET);
	assert_int_equal(qp_deadline(&qp), TIME_NEVER);
	assert_false(qp_wants_tx(&qp));
	qp_fini(&qp);
	conf = conf_good();
	conf.max_recv_wr = conf.max_recv_sge = 0;
	assert_int_equal(qp_init(&qp, 2, &conf, &failing, NULL, NULL), 0);
	qp_fini(&qp);
	assert_int_equal(mem_used, 0);
}

TEST(failed_allocation_leaks_nothing)
{
	struct qp_conf conf = conf_good();
	unsigned gets = 0;
	int rc;

	do {
		mem_fail_at = ++gets;
		rc = qp_init(&qp, 2, &conf, &failing, NULL, NULL);
		if (rc != 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(mem_used, 0);
		}
	} while (rc != 0);
	mem_fail_at = 0;
	assert_true(gets >= 3); /* SQ, RQ */
	qp_fini(&qp);
	assert_int_equal(mem_used, 0);
}

#define IDLE_QPS 1000
#define VERBS_BYTES (3 * LINE_SIZE) /* the object in lib/verbs */

/* Bytes that the slab takes from its allocator for a QP with an SRQ of one SGE. */
static size_t
idle_qp_bytes(uint32_t max_send_wr)
{
	struct qp_conf conf = conf_good();
	static struct qp *qps[IDLE_QPS];
	static void *verbs[IDLE_QPS];
	static struct slab slab;
	struct alloc mem;
	size_t bytes;

	conf.srq = &srq;
	conf.max_send_wr = max_send_wr;
	conf.max_send_sge = 1; /* both depths are pieces of the slab */
	slab_init(&slab, &failing, SLAB_PIECE_MAX);
	mem = slab_alloc(&slab);
	for (uint32_t i = 0; i < IDLE_QPS; i++) {
		qps[i] = alloc_get(&mem, "qp", sizeof(*qps[i]));
		verbs[i] = alloc_get(&mem, "verbs", VERBS_BYTES);
		assert_non_null(qps[i]);
		assert_non_null(verbs[i]);
		assert_int_equal(qp_init(qps[i], 2 + i, &conf, &mem, NULL, NULL), 0);
	}
	bytes = mem_used / IDLE_QPS;
	for (uint32_t i = 0; i < IDLE_QPS; i++) {
		qp_fini(qps[i]);
		alloc_put(&mem, verbs[i], VERBS_BYTES);
		alloc_put(&mem, qps[i], sizeof(*qps[i]));
	}
	slab_fini(&slab);
	assert_int_equal(mem_used, 0);
	return bytes;
}

/* Memory of an idle QP besides its rings. Above 1 KiB, 100,000 QPs would no longer fit 100 MB. With
 * twice the depth the rings of the send queue take twice as much, so they drop out of the
 * difference, as in docs/perf.md. Memory of the same size at each depth counts. */
TEST(idle_qp_size)
{
	assert_true(sizeof(struct qp) + VERBS_BYTES <= 960);
	assert_in_range(2 * idle_qp_bytes(64) - idle_qp_bytes(128), 960, 1024);
}

/* ---- The QPN table ---- */

static struct qp table_qps[16];

/* A QP that is only looked up. */
static struct qp *
fake_qp(uint32_t qpn, uint32_t index)
{
	table_qps[index].qpn = qpn;
	table_qps[index].sq.doorbell = index;
	return &table_qps[index];
}

/* QPNs 0 and 1 are for management, 0xFFFFFF for multicast (IBA 3.9, 10.5.1). */
TEST(qpn_table_limits)
{
	struct qp_table t;
	uint32_t qpn, index;

	assert_int_equal(qp_table_init(&t, 2, 0), -EINVAL);
	assert_int_equal(qp_table_init(&t, 0, 16), -EINVAL);
	assert_int_equal(qp_table_init(&t, 1, 16), -EINVAL);
	assert_int_equal(qp_table_init(&t, 0xFFFFFF, 1), -EINVAL);
	assert_int_equal(qp_table_init(&t, 0xFFFFF0, 16), -EINVAL);
	assert_int_equal(qp_table_init(&t, 0xFFFFEF, 9), 0); /* 16 QPNs: .. 0xFFFFFE */
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
		assert_int_equal(qpn, 0xFFFFEF + i);
		assert_int_equal(index, i);
		/* reserved, but not in the table yet */
		assert_null(qp_table_get(&t, qpn));
		qp_table_put(&t, fake_qp(qpn, index));
	}
	assert_int_equal(qp_table_reserve(&t, &qpn, &index), -ENOSPC);
	for (unsigned i = 0; i < 9; i++) {
		assert_ptr_equal(qp_table_get(&t, 0xFFFFEF + i), &table_qps[i]);
		assert_ptr_equal(qp_table_at(&t, i), &table_qps[i]);
	}
	assert_null(qp_table_get(&t, 0xFFFFEE));
	assert_null(qp_table_get(&t, 0xFFFFFF));
	assert_null(qp_table_get(&t, 0));
	assert_null(qp_table_get(&t, 1));
	for (unsigned i = 0; i < 9; i++)
		qp_table_free(&t, i);
	qp_table_fini(&t);
}

/* The QPN that has been free the longest is used first, so that late packets for a
 * destroyed QP do not meet a new QP soon. */
TEST(oldest_free_qpn_first)
{
	struct qp_table t;
	static const uint32_t freed[] = {0x105, 0x100, 0x103};
	uint32_t qpn, index, last = 0;

	assert_int_equal(qp_table_init(&t, 0x100, 8), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
	qp_table_free(&t, 1);
	for (unsigned i = 3; i < 8; i++) {
		assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
		assert_int_equal(qpn, 0x100 + i);
	}
	assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
	assert_int_equal(qpn, 0x101);
	for (unsigned i = 0; i < 3; i++)
		qp_table_free(&t, freed[i] - 0x100);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
		assert_int_equal(qpn, freed[i]);
	}
	/* With one QPN in use at a time all are used in turn. */
	for (unsigned i = 0; i < 8; i++)
		qp_table_free(&t, i);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(qp_table_reserve(&t, &qpn, &index), 0);
		if (i != 0)
			assert_int_equal(qpn, 0x100 + (last - 0x100 + 1) % 8);
		last = qpn;
		qp_table_put(&t, fake_qp(qpn, index));
		qp_table_hide(&t, &table_qps[index]); /* stopped */
		assert_null(qp_table_get(&t, qpn));
		assert_null(qp_table_at(&t, index));
		qp_table_free(&t, index);
	}
	assert_int_equal(t.count, 0);
	qp_table_fini(&t);
}

/* The daemon's QPNs come from all 24 bits. Indices stay small all the same. A packet for
 * an earlier QP does not reach the QP that has its place in the table. */
TEST(qpns_of_the_daemon)
{
	static const uint32_t qpns[] = {0xABCD05, 0x000013, 0x77770E};
	struct qp_table t;
	uint32_t index;

	assert_int_equal(qp_table_init(&t, 2, 16), 0);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < RTE_DIM(qpns); i++) {
			uint32_t qpn = qpns[i] + (round % 3 << 4);

			assert_int_equal(qp_table_claim(&t, qpn, &index), 0);
			assert_in_range(index, 0, 2);
			qp_table_put(&t, fake_qp(qpn, index));
			assert_ptr_equal(qp_table_get(&t, qpn), &table_qps[index]);
			assert_null(qp_table_get(&t, qpn ^ 0x10));
			assert_null(qp_table_get(&t, qpn ^ 0x100000));
			assert_int_equal(qp_table_claim(&t, qpn, &index), -EINVAL);
			assert_int_equal(qp_table_claim(&t, qpn ^ 0x10, &index), -EINVAL);
		}
		assert_int_equal(t.count, 3);
		for (unsigned i = 0; i < RTE_DIM(qpns); i++) {
			qp_table_hide(&t, &table_qps[i]);
			qp_table_free(&t, i);
		}
	}
	qp_table_fini(&t);
}

static int
setup(void **state)
{
	return cq_init(&cq, &alloc_plain, 16, NULL, NULL);
}

static int
teardown(void **state)
{
	cq_fini(&cq);
	return 0;
}

TEST_GROUP(setup, teardown)
