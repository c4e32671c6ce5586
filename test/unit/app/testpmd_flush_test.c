/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists with FLUSHes. This file stands for verbs. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rocade/flush.h>

#include "case.h"
#include "tx_flush.h"
#include "op.h"

#define REQUESTS 6

static uint64_t posted[REQUESTS]; /* wr_id of each */
static unsigned n_posted, calls, room;
static struct ibv_qp_ex ex;
static bool flushing;

static int
one_post(uint64_t wr_id)
{
	if (n_posted == room)
		return ENOMEM;
	posted[n_posted++] = wr_id;
	return 0;
}

static int
fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	calls++;
	for (; wr != NULL; wr = wr->next) {
		assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
		*bad = wr;
		if (one_post(wr->wr_id) != 0)
			return ENOMEM;
	}
	return 0;
}

static void
fake_start(struct ibv_qp_ex *qp)
{
	assert_ptr_equal(qp, &ex);
	flushing = false;
}

static int
fake_complete(struct ibv_qp_ex *qp)
{
	assert_true(flushing);
	return one_post(qp->wr_id);
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, &ex.qp_base);
	return &ex;
}

int
rocade_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
	uint8_t type, uint8_t level)
{
	assert_ptr_equal(qp, &ex);
	assert_int_equal(rkey, 7);
	assert_int_equal(remote_addr, 8);
	assert_int_equal(len, 9);
	assert_int_equal(type, ROCADE_FLUSH_GLOBAL);
	assert_int_equal(level, ROCADE_FLUSH_RANGE);
	assert_int_equal(qp->wr_flags, IBV_SEND_SIGNALED);
	flushing = true;
	return 0;
}

/* Posts a list with a FLUSH for each f, and WRITEs. Returns the error. */
static int
list_post(const char *text, unsigned has_room, unsigned *n)
{
	static struct ibv_context context = {.ops = {.post_send = fake_post_send}};
	struct ibv_send_wr wr[REQUESTS];

	ex = (struct ibv_qp_ex){.qp_base.context = &context,
		.wr_start = fake_start,
		.wr_complete = fake_complete};
	n_posted = calls = 0;
	room = has_room;
	*n = (unsigned)strlen(text);
	for (unsigned i = 0; i < *n; i++) {
		wr[i] = (struct ibv_send_wr){.wr_id = i + 1,
			.next = &wr[i + 1], /* the last one's is not used */
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED};
		if (text[i] != 'f')
			continue;
		wr[i].opcode = (enum ibv_wr_opcode)ROCADE_WR_FLUSH;
		wr[i].wr.atomic.rkey = 7;
		wr[i].wr.atomic.remote_addr = 8;
		wr[i].wr.atomic.compare_add = 9;
		wr[i].wr.atomic.swap = ROCADE_FLUSH_RANGE;
	}
	return flush_post_list(&ex.qp_base, wr, n);
}

TEST(requests_are_posted_in_order)
{
	static const struct {
		const char *text;
		unsigned calls; /* of ibv_post_send(3) */
	} lists[] = {{"w", 1}, {"f", 0}, {"wwwwww", 1}, {"ffffff", 0}, {"wfwwfw", 3},
		{"fwwwwf", 1}};
	unsigned n;

	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
		assert_int_equal(list_post(lists[l].text, REQUESTS, &n), 0);
		assert_int_equal(n, strlen(lists[l].text));
		assert_int_equal(n_posted, n);
		assert_int_equal(calls, lists[l].calls);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(posted[i], i + 1);
	}
}

TEST(nothing_is_posted_behind_a_refused_request)
{
	unsigned n;

	for (unsigned has_room = 0; has_room < REQUESTS; has_room++) {
		assert_int_equal(list_post("wfwwfw", has_room, &n), ENOMEM);
		assert_int_equal(n, has_room);
		assert_int_equal(n_posted, has_room);
	}
}
