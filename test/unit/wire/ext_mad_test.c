/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a query for extensions and of its answers: Rocade's, Linux's, and others. */
#include <string.h>

#include "case.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

#define TID UINT64_C(0x0123456789ABCDEF)

/* docs/protocol.md 20.3. */
static const uint8_t query_bytes[GSI_LEN] = {1, 0x32, 1, 0x01, 0, 0, 0, 0, 0x01, 0x23,
	0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0, 1, [37] = 0x02, 0x52, 0x4F, 0x10, 0, 0,
	0x01};

TEST(query_has_the_documented_bytes)
{
	const struct ext_mad mad = {.tid = TID, .extensions = EXT_SACK};
	uint8_t bytes[GSI_LEN];
	struct ext_mad got;

	memset(bytes, 0xEE, sizeof(bytes));
	ext_mad_write(bytes, EXT_MAD_QUERY, &mad);
	assert_memory_equal(bytes, query_bytes, GSI_LEN);
	assert_true(ext_mad_is_class(bytes));
	assert_int_equal(ext_mad_read(bytes, &got), EXT_MAD_QUERY);
	assert_true(got.tid == TID);
	assert_int_equal(got.extensions, EXT_SACK);
}

TEST(answer_differs_in_its_method)
{
	const struct ext_mad mad = {.tid = TID, .extensions = EXT_SACK};
	uint8_t bytes[GSI_LEN], want[GSI_LEN];
	struct ext_mad got;

	memcpy(want, query_bytes, GSI_LEN);
	want[3] = 0x81;
	ext_mad_write(bytes, EXT_MAD_ANSWER, &mad);
	assert_memory_equal(bytes, want, GSI_LEN);
	assert_int_equal(ext_mad_read(bytes, &got), EXT_MAD_ANSWER);
	assert_true(got.tid == TID);
	assert_int_equal(got.extensions, EXT_SACK);
}

/* Returns what an answer with one byte changed says. */
static uint32_t
answer_with(unsigned at, uint8_t value)
{
	uint8_t bytes[GSI_LEN];
	struct ext_mad got = {.extensions = 0xFF};

	memcpy(bytes, query_bytes, GSI_LEN);
	bytes[3] = 0x81;
	bytes[at] = value;
	assert_int_equal(ext_mad_read(bytes, &got), EXT_MAD_ANSWER);
	assert_true(got.tid == TID);
	return got.extensions;
}

/* The kernel's ib_mad returns a query that no agent handles, with a status. */
TEST(other_answers_name_no_extension)
{
	assert_int_equal(answer_with(255, 1), EXT_SACK);   /* ignored */
	assert_int_equal(answer_with(43, 0xFF), EXT_SACK); /* and others, unknown here */
	assert_int_equal(answer_with(43, 0xFE), 0);
	assert_int_equal(answer_with(5, 0x0C), 0);
	assert_int_equal(answer_with(4, 0x80), 0);
	assert_int_equal(answer_with(2, 2), 0);
	assert_int_equal(answer_with(17, 2), 0);
	assert_int_equal(answer_with(16, 1), 0);
	assert_int_equal(answer_with(37, 0), 0);
	assert_int_equal(answer_with(39, 0), 0);
	assert_int_equal(answer_with(40, 0x20), 0); /* another version */
}

/* Other messages of the class are neither. */
TEST(other_messages_are_told_apart)
{
	static const struct {
		uint8_t at, value;
	} rows[] = {{0, 2}, {1, 0x33}, {2, 2}, {3, 0x02}, {3, 0x00}, {3, 0x03}, {3, 0x87},
		{16, 1}, {17, 0}, {37, 3}, {38, 0}, {39, 0}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[GSI_LEN];
		struct ext_mad got;

		memcpy(bytes, query_bytes, GSI_LEN);
		bytes[rows[i].at] = rows[i].value;
		assert_int_equal(ext_mad_read(bytes, &got), EXT_MAD_OTHER);
	}
}
