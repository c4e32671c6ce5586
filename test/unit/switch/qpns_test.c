/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

#define COUNT 8
#define BASE 100

static const struct random_key key = {{1, 2}};
static struct sw_client owner;
static struct sw_qp_list list = LIST_HEAD_INITIALIZER(list);

static uint32_t
take(struct qpns *t, uint64_t now)
{
	uint32_t qpn;

	assert_int_equal(qpns_take(t, &owner, &list, now, &qpn), 0);
	assert_ptr_equal(qpns_find(t, qpn)->owner, &owner);
	assert_in_range(qpn, 2, 0xFFFFFE);
	return qpn;
}

static void
give(struct qpns *t, uint32_t qpn, uint64_t now)
{
	qpns_give(t, qpns_find(t, qpn), now);
	assert_null(qpns_find(t, qpn));
}

/* With a base QPNs are assigned upwards from it. Each use of an entry has another QPN. */
TEST(qpns_from_a_base)
{
	struct qpns t;
	uint32_t qpn;

	assert_int_equal(qpns_init(&t, BASE, COUNT, &key), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(take(&t, 0), BASE + i);
	assert_int_equal(qpns_take(&t, &owner, &list, 0, &qpn), -ENOSPC);
	assert_int_equal(qpns_free_count(&t), 0);
	give(&t, 103, 0);
	give(&t, 101, 0);
	assert_int_equal(qpns_free_count(&t), 2);
	assert_int_equal(take(&t, 0), 103 + COUNT);
	assert_false(qpns_find(&t, 103 + COUNT)->peer);
	assert_int_equal(take(&t, 0), 101 + COUNT);
	assert_null(qpns_find(&t, 103));
	assert_null(qpns_find(&t, BASE - 1));
	assert_null(qpns_find(&t, BASE + COUNT));
	assert_null(qpns_find(&t, BASE | 1u << 24));
	while (!LIST_EMPTY(&list))
		qpns_give(&t, LIST_FIRST(&list), 0);
	qpns_fini(&t);
}

/* Uses up all QPNs of the entry. Returns the last one. */
static uint32_t
entry_use_up(struct qpns *t, uint64_t now)
{
	uint32_t qpn = take(t, now), next;

	for (;; qpn = next) {
		uint64_t serial = qpns_find(t, qpn)->serial;

		give(t, qpn, now);
		if (qpn + t->mask + 1 > 0xFFFFFE)
			return qpn;
		next = take(t, now);
		assert_int_equal(next, qpn + t->mask + 1);
		assert_int_not_equal(qpns_find(t, next)->serial, serial);
	}
}

/* A client that takes and gives back the only free QPN does not get one for the second
 * time before QPN_WAIT_NS. */
TEST(used_up_entry_waits)
{
	struct qpns t;
	uint32_t qpn, first;

	/* 256 QPNs in each entry */
	assert_int_equal(qpns_init(&t, 0, 65536, &key), 0);
	for (uint32_t i = 0; i < 65535; i++)
		take(&t, 0);
	(void)entry_use_up(&t, NS_PER_SEC);
	assert_int_equal(qpns_free_count(&t), 1);
	assert_int_equal(qpns_take(&t, &owner, &list, NS_PER_SEC + QPN_WAIT_NS - 1, &qpn),
		-ENOSPC);
	first = take(&t, NS_PER_SEC + QPN_WAIT_NS);
	assert_in_range(first, 2, 65535 + 65536);
	give(&t, first, NS_PER_SEC + QPN_WAIT_NS);
	assert_int_equal(take(&t, NS_PER_SEC + QPN_WAIT_NS), first + 65536);
	while (!LIST_EMPTY(&list))
		qpns_give(&t, LIST_FIRST(&list), 0);
	qpns_fini(&t);
}

/* Management QPNs and that of multicast are left out. */
TEST(special_qpns_are_not_assigned)
{
	struct qpns t;

	assert_int_equal(qpns_init(&t, 2, 2, &key), 0);
	assert_int_equal(take(&t, 0), 2);
	/* 5, 7, ... 0xFFFFFD, and not 0xFFFFFF */
	assert_int_equal(entry_use_up(&t, 0), 0xFFFFFD);
	assert_int_equal(take(&t, QPN_WAIT_NS), 3);
	while (!LIST_EMPTY(&list))
		qpns_give(&t, LIST_FIRST(&list), 0);
	qpns_fini(&t);
}

/* Without a base QPNs come from all places, and in another order with another key. */
TEST(qpns_are_random)
{
	static const struct random_key other = {{1, 3}};
	uint32_t low = UINT32_MAX, high = 0, qpn, near = 0, same = 0, last = 0;
	struct qpns t, u;

	assert_int_equal(qpns_init(&t, 0, 65536, &key), 0);
	assert_int_equal(qpns_init(&u, 0, 65536, &other), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		qpn = take(&t, 0);
		low = RTE_MIN(low, qpn);
		high = RTE_MAX(high, qpn);
		near += qpn - last + 1000 < 2000;
		same += take(&u, 0) == qpn;
		last = qpn;
	}
	assert_true(low < 0x80000);
	assert_true(high > 0xF80000);
	assert_true(near < 4);
	assert_true(same < 2);
	while (!LIST_EMPTY(&list))
		LIST_REMOVE(LIST_FIRST(&list), link);
	qpns_fini(&t);
	qpns_fini(&u);
}

TEST(invalid_range_is_refused)
{
	struct qpns t;

	assert_int_equal(qpns_init(&t, 1, COUNT, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 2, 0, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 2, 7, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 2, 1u << 24, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 0xFFFFFF, 1, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 0xFFFFFE - COUNT + 2, COUNT, &key), -EINVAL);
	assert_int_equal(qpns_init(&t, 0xFFFFFE - COUNT + 1, COUNT, &key), 0);
	qpns_fini(&t);
}
