/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

static const struct region_geom good = {
	.tx_slots = 4, .rx_slots = 8, .tx_bufs = 6, .buf_size = 256};

static void
parts_do_not_overlap(void **state)
{
	size_t size = region_size(&good);
	uint8_t *mem = aligned_alloc(4096, size);
	struct region r;

	memset(mem, 0, size);
	region_init(&r, mem, &good);
	memset(r.head, 1, sizeof(*r.head));
	memset(r.tx_desc, 2, good.tx_slots * sizeof(*r.tx_desc));
	memset(r.rx_desc, 3, good.rx_slots * sizeof(*r.rx_desc));
	memset(region_tx_buf(&r, 0), 4, (size_t)good.tx_bufs * good.buf_size);
	memset(region_rx_buf(&r, 0), 5, (size_t)good.rx_slots * good.buf_size);
	assert_int_equal(*(uint8_t *)r.head, 1);
	assert_int_equal(((uint8_t *)(r.head + 1))[-1], 1);
	assert_int_equal(*(uint8_t *)r.tx_desc, 2);
	assert_int_equal(*(uint8_t *)(r.tx_desc + good.tx_slots - 1), 2);
	assert_int_equal(*(uint8_t *)(r.rx_desc + good.rx_slots - 1), 3);
	assert_int_equal(region_tx_buf(&r, good.tx_bufs - 1)[good.buf_size - 1], 4);
	assert_ptr_equal(region_rx_buf(&r, 1), region_rx_buf(&r, 0) + good.buf_size);
	memset(r.report, 6, sizeof(*r.report));
	assert_int_equal(region_rx_buf(&r, good.rx_slots - 1)[good.buf_size - 1], 5);
	assert_true((uint8_t *)(r.report + 1) <= mem + size);
	assert_int_equal(size % 4096, 0);
	free(mem);
}

static void
invalid_geometries_are_refused(void **state)
{
	static const struct region_geom bad[] = {
		{3, 8, 6, 256}, /* not a power of two */
		{4, 6, 6, 256},
		{1, 8, 6, 256},
		{4, 0, 6, 256},
		{4, 8, 3, 256}, /* fewer buffers than slots */
		{4, 8, 6, 250}, /* not a multiple of a cache line */
		{4, 8, 6, 64},
		{4, 8, 6, 1u << 20},
		{1u << 20, 8, 1u << 20, 256},
		{4, 1u << 31, 6, 256},
		{4, 8, UINT32_MAX, 256},
	};

	assert_true(region_geom_ok(&good));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(region_geom_ok(&bad[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_do_not_overlap),
		cmocka_unit_test(invalid_geometries_are_refused),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
