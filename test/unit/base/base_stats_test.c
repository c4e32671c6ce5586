/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/base_stats.h"
#include "case.h"

static void
row_check(const struct stat_row *rows, size_t row, const char *name)
{
	assert_string_equal(rows[row].name, name);
	assert_non_null(rows[row].text);
	assert_true(rows[row].text[0] != '\0');
}

TEST(port_rows_follow_the_structure)
{
	size_t drops = offsetof(struct port_stats, drop) / sizeof(uint64_t);
	size_t seen = 0;

#define PORT_STAT(name, text)                                                            \
	row_check(port_stat_rows, offsetof(struct port_stats, name) / sizeof(uint64_t),  \
		#name);                                                                  \
	seen++;
#define DROP(name, text)                                                                 \
	row_check(port_stat_rows, drops + DROP_##name, "drop_" #name);                   \
	seen++;
#include "base/base_stats.def"
	assert_int_equal(seen, PORT_STAT_COUNT);
}

TEST(qp_rows_follow_the_structure)
{
	size_t seen = 0;

#define QP_STAT(name, text)                                                              \
	row_check(qp_stat_rows, offsetof(struct qp_stats, name) / sizeof(uint32_t),      \
		#name);                                                                  \
	seen++;
#include "base/base_stats.def"
	assert_int_equal(seen, QP_STAT_COUNT);
}

/* JSON and `show` use the name as the key. */
TEST(names_are_unique)
{
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(
				port_stat_rows[i].name, port_stat_rows[j].name);
	for (size_t i = 0; i < QP_STAT_COUNT; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(
				qp_stat_rows[i].name, qp_stat_rows[j].name);
}

TEST(add_adds_every_value)
{
	struct port_stats from, to;
	uint64_t *value = (uint64_t *)&from;
	const uint64_t *sum = (const uint64_t *)&to;

	memset(&to, 0, sizeof(to));
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		value[i] = (i + 1) * UINT64_C(0x100000001);
	port_stats_add(&to, &from);
	port_stats_add(&to, &from);
	for (size_t i = 0; i < PORT_STAT_COUNT; i++) {
		assert_int_equal(sum[i], 2 * (i + 1) * UINT64_C(0x100000001));
		assert_int_equal(value[i], (i + 1) * UINT64_C(0x100000001));
	}
}
