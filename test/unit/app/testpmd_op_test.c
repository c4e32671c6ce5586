/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixes of operations: what --op accepts, and in which order they are posted. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "op.h"
#include "testpmd_parse.h"

static struct op_mix mix;

TEST(mixes_are_parsed)
{
	char text[192];

	for (unsigned i = 0; i < OP_KINDS; i++) {
		assert_true(parse_mix(op_rows[i].name, &mix));
		assert_true(mix_has(&mix, i));
		assert_int_equal(mix.period, 1);
		assert_int_equal(mix_any(&mix), op_rows[i].flags);
		mix_print(&mix, text, sizeof(text));
		assert_string_equal(text, op_rows[i].name);
		assert_int_equal(mix_is_send(&mix), i == OP_SEND);
	}
	/* A weight counts in proportion to the others only. */
	assert_true(parse_mix("send:10,write:70,read:20", &mix));
	mix_print(&mix, text, sizeof(text));
	assert_string_equal(text, "send:1,write:7,read:2");
	assert_true(parse_mix("send:3", &mix));
	assert_true(mix_is_send(&mix));
	assert_true(parse_mix("send:1,write:1", &mix));
	assert_false(mix_is_send(&mix));
	assert_int_equal(mix_all(&mix), OP_GIVES);
	assert_int_equal(mix_any(&mix), OP_GIVES | OP_RECEIVED | OP_RING);
}

TEST(wrong_mixes_are_refused)
{
	static const char *const bad[] = {"", "sends", "send,", ",send", "send,write",
		"send:", "send:0", "send:1001", "send:-1", "send:1,send:2", "send:1:2",
		"send:1,,write:1", "send:1,write",
		"write:1,a-name-that-no-operation-has:1"};

	assert_true(parse_mix("cas", &mix));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(parse_mix(bad[i], &mix));
		assert_true(mix_has(&mix, OP_CAS) && mix.period == 1);
	}
}

/* Each operation has its weight in a period, and is never more than one message behind its share. */
TEST(operations_are_spread)
{
	static const char *const texts[] = {"write:70,read:20,send:10",
		"send:1000,cas:1,fadd:999", "write:1,read:1,send:1,cas:1,fadd:1"};

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		uint64_t count[OP_KINDS] = {0};

		assert_true(parse_mix(texts[t], &mix));
		for (uint32_t at = 0; at < mix.period; at++) {
			count[mix.order[at]]++;
			for (unsigned i = 0; i < OP_KINDS; i++) {
				double share =
					(double)mix.weights[i] * (at + 1) / mix.period;

				assert_true((double)count[i] > share - OP_KINDS &&
					    (double)count[i] < share + OP_KINDS);
			}
		}
		for (unsigned i = 0; i < OP_KINDS; i++)
			assert_int_equal(count[i], mix.weights[i]);
	}
}

/* Walking over messages finds those of a kind, as counting does, with their sizes. */
TEST(walks_agree_with_counts)
{
	struct op_walk walk = {0};

	assert_true(parse_mix("write:5,send:3,read:4,write-imm:1", &mix));
	for (uint64_t found = 0; found < 1000; found++) {
		const struct op_row *op = walk_find(&walk, &mix, 7, OP_RECEIVED);

		assert_true(op == &op_rows[OP_SEND] || op == &op_rows[OP_WRITE_IMM]);
		assert_int_equal(mix_count(&mix, walk.msg, OP_RECEIVED), found);
		assert_int_equal(mix_count(&mix, walk.msg + 1, OP_RECEIVED), found + 1);
		assert_int_equal(walk.op_i, walk.msg % mix.period);
		assert_int_equal(walk.size_i, walk.msg % 7);
		walk_next(&walk, &mix, 7);
	}
	assert_int_equal(mix_count(&mix, 0, OP_RING), 0);
	assert_int_equal(mix_count(&mix, 13000, OP_RING), 6000);
}

TEST(types_have_operations)
{
	char text[128];

	assert_true(parse_mix("send", &mix));
	for (unsigned type = 0; type < TYPE_KINDS; type++)
		assert_null(mix_lacks(&mix, (enum type_kind)type));
	assert_true(parse_mix("send:1,read:1", &mix));
	assert_null(mix_lacks(&mix, TYPE_XRC));
	assert_ptr_equal(mix_lacks(&mix, TYPE_UC), &op_rows[OP_READ]);
	assert_ptr_equal(mix_lacks(&mix, TYPE_UD), &op_rows[OP_READ]);
	assert_true(parse_mix("atomic-write", &mix));
	assert_non_null(mix_lacks(&mix, TYPE_XRC));
	assert_true(parse_mix("write:3,flush:1", &mix));
	assert_null(mix_lacks(&mix, TYPE_RC));
	assert_ptr_equal(mix_lacks(&mix, TYPE_UC), &op_rows[OP_FLUSH]);
	assert_ptr_equal(mix_lacks(&mix, TYPE_XRC), &op_rows[OP_FLUSH]);
	type_ops_print(TYPE_RC, text, sizeof(text));
	for (unsigned i = 0; i < OP_KINDS; i++)
		assert_non_null(strstr(text, op_rows[i].name));
}
