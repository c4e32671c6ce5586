/* SPDX-License-Identifier: BSD-3-Clause */
/* Resizing a CQ that holds CQEs, and the time stamps of CQs that record them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "case.h"
#include "queue/cq.h"

#include "../rand.h"
#include "fixture.h"

static struct event_queue events, channel;
static struct cq cq;
static uint64_t now;

static void
cq_open(uint32_t cqe, bool stamps)
{
	assert_int_equal(event_queue_init(&events), 0);
	assert_int_equal(event_queue_init(&channel), 0);
	assert_int_equal(fcntl(events.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(cq_init(&cq, &alloc_counting, cqe, &events, &cq), 0);
	cq_set_channel(&cq, &channel, &cq);
	if (stamps)
		assert_int_equal(cq_enable_stamps(&cq), 0);
}

static void
cq_close(void)
{
	event_purge(&cq.error_event);
	event_purge(&cq.comp_event);
	cq_fini(&cq);
	event_queue_fini(&events);
	event_queue_fini(&channel);
	assert_int_equal(counting.bytes, 0);
}

/* The time stamp is 3 times the number. */
static bool
cqe_put(uint64_t number, uint32_t qpn)
{
	struct cqe cqe = {.wr_id = number, .qpn = qpn, .sq_end = (uint32_t)number};

	now = number * 3;
	return cq_put(&cq, &cqe, &now);
}

static uint64_t
poll_one(void)
{
	uint64_t number = UINT64_MAX;
	const struct cqe *cqe;
	uint32_t tail;

	cq_lock(&cq);
	tail = cq.tail;
	cqe = cq_peek(&cq, &tail);
	if (cqe != NULL) {
		number = cqe->wr_id;
		assert_int_equal(cqe->sq_end, (uint32_t)number);
		if (cq.stamps != NULL)
			assert_int_equal(cq.stamps[tail & cq.mask], number * 3);
		tail++;
	}
	cq_consume(&cq, tail);
	cq_unlock(&cq);
	return number;
}

static int
resize(uint32_t cqe)
{
	struct cq other;
	int rc = cq_init_like(&cq, cqe, &other);

	if (rc != 0)
		return rc;
	rc = cq_replace(&cq, &other, cqe);
	cq_fini(&other);
	return rc;
}

/* ---- A model of the queue ---- */

#define MODEL 256

static struct {
	uint64_t number[MODEL];
	uint32_t qpn[MODEL];
	unsigned n;
	uint64_t next;
} model;

static void
model_put(uint64_t *seed)
{
	uint32_t qpn = (uint32_t)rand_below(seed, 3);

	if (cq.head - cq.tail == cq.size)
		return;
	assert_true(cqe_put(model.next, qpn));
	model.number[model.n] = model.next++;
	model.qpn[model.n++] = qpn;
}

static void
model_take(void)
{
	if (model.n == 0) {
		assert_int_equal(poll_one(), UINT64_MAX);
		return;
	}
	assert_int_equal(poll_one(), model.number[0]);
	model.n--;
	memmove(model.number, model.number + 1, model.n * sizeof(model.number[0]));
	memmove(model.qpn, model.qpn + 1, model.n * sizeof(model.qpn[0]));
}

static void
model_purge(uint32_t qpn)
{
	unsigned n = 0;

	cq_clean(&cq, qpn);
	for (unsigned i = 0; i < model.n; i++) {
		if (model.qpn[i] == qpn)
			continue;
		model.number[n] = model.number[i];
		model.qpn[n++] = model.qpn[i];
	}
	model.n = n;
}

static void
model_resize(uint32_t cqe)
{
	uint32_t size = cq.size;

	assert_int_equal(resize(cqe), model.n > cqe ? -EINVAL : 0);
	assert_int_equal(cq.size, model.n > cqe ? size : rte_align32pow2(cqe));
}

static void
sweep(uint64_t seed, bool stamps)
{
	memset(&model, 0, sizeof(model));
	cq_open(8, stamps);
	cq.shared = cq.shared || rand_below(&seed, 2) != 0;
	for (unsigned step = 0; step < 3000; step++) {
		uint64_t what = rand_below(&seed, 16);

		if (what == 0)
			model_resize(1 + (uint32_t)rand_below(&seed, 128));
		else if (what == 1)
			model_purge((uint32_t)rand_below(&seed, 3));
		else if (what < 8)
			model_take();
		else
			model_put(&seed);
	}
	while (model.n != 0)
		model_take();
	model_take();
	assert_false(cq.error);
	cq_close();
}

TEST(resize_keeps_order_and_stamps)
{
	uint64_t seed = test_seed(1);

	print_message("# ROCADE_TEST_SEED=%" PRIu64 "\n", seed);
	for (unsigned i = 0; i < 200; i++)
		sweep(seed + i, i % 2 != 0);
}

TEST(overrun_after_resize_is_an_error)
{
	cq_open(4, false);
	for (unsigned i = 0; i < 4; i++)
		assert_true(cqe_put(i, 1));
	assert_int_equal(resize(3), -EINVAL);
	assert_int_equal(resize(4), 0);
	assert_int_equal(resize(8), 0);
	for (unsigned i = 4; i < 8; i++)
		assert_true(cqe_put(i, 1));
	assert_false(cq.error);
	assert_false(cqe_put(8, 1));
	assert_true(cq.error);
	/* The error stays, whatever the size. */
	assert_int_equal(resize(16), 0);
	assert_false(cqe_put(8, 1));
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(poll_one(), i);
	assert_int_equal(poll_one(), UINT64_MAX);
	cq_close();
}

TEST(refused_resize_changes_nothing)
{
	cq_open(4, true);
	assert_true(cqe_put(1, 1));
	assert_int_equal(resize(0), -EINVAL);
	assert_int_equal(resize(CQ_MAX_CQE + 1), -EINVAL);
	for (unsigned grants = 0; grants < 2; grants++) {
		counting_refuse(grants);
		assert_int_equal(resize(64), -ENOMEM);
		counting_grant();
	}
	assert_int_equal(cq.size, 4);
	assert_int_equal(poll_one(), 1);
	cq_close();
}

static bool
event_is_there(void)
{
	struct event_record record;

	return event_next(&channel, &record) == 0;
}

TEST(arming_survives_resize)
{
	cq_open(4, false);
	assert_true(cqe_put(0, 1));
	cq_arm(&cq, false);
	assert_int_equal(resize(64), 0);
	assert_false(event_is_there());
	assert_true(cqe_put(1, 1));
	assert_true(event_is_there());
	cq_close();
}
