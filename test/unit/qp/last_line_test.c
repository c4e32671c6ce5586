/* SPDX-License-Identifier: BSD-3-Clause */
/* The last cache line of a WRITE is stored behind the bytes before it, and in ascending order
 * (docs/memory-order.md). The program has a responder of its own, whose memcpy() is copy_recorded(). */
#include "hold_fixture.h"
#include "wire/icrc.h"

#define REMOTE 0x8000

void *copy_recorded(void *dst, const void *src, size_t len);

static uint8_t *target, *line; /* of the WRITE, its last cache line */
static uint32_t write_len;
static unsigned stores; /* to the last line */
static uint8_t *next;   /* byte of the last line that is to be stored next */

static bool
before_is_there(void)
{
	return __builtin_memcmp(target, p.a.mem, (size_t)(line - target)) == 0;
}

void *
copy_recorded(void *dst, const void *src, size_t len)
{
	uint8_t *to = dst;

	if (to >= target && to < target + write_len && to + len > line) {
		assert_ptr_equal(to, next);
		assert_in_range(len, 1, 16);
		assert_true(before_is_there());
		next = to + len;
		stores++;
	}
	return __builtin_memcpy(dst, src, len);
}

enum way {
	WAY_PLAIN,
	WAY_PLACED, /* directly, but for the first and the last packet */
	WAY_HELD,
	WAYS
};

static void
way_open(enum way way)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	hold_open(&conf);
	p.b.shared.direct_place_off = way != WAY_PLACED;
}

/* Held packets arrive in the wrong order. */
static void
packets_deliver(enum way way)
{
	host_pull(&p.a, PULL_ALL);
	while (p.a.wire_count != 0)
		wire_deliver(&p.a, way == WAY_HELD ? p.a.wire_count - 1 : 0);
}

static void
write_run(enum way way, uint32_t len, uint32_t offset)
{
	uint32_t mtu = mtu_bytes(p.conf.mtu);
	struct sge sge;
	struct send_req req =
		host_rdma(&p.a, &sge, len, WR_RDMA_WRITE, 0, REMOTE + offset, len);

	target = p.b.mem + REMOTE + offset;
	write_len = len;
	line = (uint8_t *)((uintptr_t)(target + len - 1) & ~(uintptr_t)(LINE_SIZE - 1));
	line = RTE_MAX(line, target + (len - 1) / mtu * mtu); /* of the last packet */
	next = line;
	stores = 0;
	bytes_fill(p.a.mem, len, len + offset);
	__builtin_memset(target, 0, len);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	packets_deliver(way);
	assert_ptr_equal(next, target + len);
	assert_true(stores != 0);
	qp_link_drain(&p);
	expect_sent(&p.a, len, IBV_WC_SUCCESS);
	assert_memory_equal(target, p.a.mem, len);
	write_len = 0;
}

TEST(last_line_is_stored_last)
{
	static const uint32_t lens[] = {1, 7, 8, 13, 16, 24, 63, 64, 65, 100, 128, 512,
		1024, 2049, 3 * 1024 + 8, 5 * 1024};
	static const uint32_t offsets[] = {0, 8, 37, 60};

	for (enum way way = 0; way < WAYS; way++) {
		way_open(way);
		for (unsigned i = 0; i < RTE_DIM(lens) * RTE_DIM(offsets); i++)
			write_run(way, lens[i / RTE_DIM(offsets)],
				offsets[i % RTE_DIM(offsets)]);
		assert_int_equal(p.b.stats.direct_placed != 0, way == WAY_PLACED);
		assert_int_equal(p.b.stats.held != 0, way == WAY_HELD);
		hold_close();
	}
}

/* A word at the end of the line, which programs poll, is stored at once. */
TEST(last_word_is_one_store)
{
	way_open(WAY_PLAIN);
	write_run(WAY_PLAIN, 8, 0);
	assert_int_equal(stores, 1);
	write_run(WAY_PLAIN, 24, 0);
	assert_int_equal(stores, 2);
	write_run(WAY_PLAIN, 4, 60);
	assert_int_equal(stores, 1);
	hold_close();
}

static int
direct_on(void **state)
{
	icrc_copy_min = ICRC_COPY_MIN;
	return 0;
}

TEST_GROUP(direct_on, NULL)
