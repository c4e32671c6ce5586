/* SPDX-License-Identifier: BSD-3-Clause */
/* --impair: what is taken, what is refused and why, what is shown. */
#include <string.h>

#include <common/impair_option.h>

#include "case.h"

TEST(shares_are_parsed)
{
	uint32_t ppm = 7;

	assert_true(parse_ppm("1%", &ppm) && ppm == 10000);
	assert_true(parse_ppm("0.1%", &ppm) && ppm == 1000);
	assert_true(parse_ppm("100%", &ppm) && ppm == 1000000);
	assert_true(parse_ppm("250ppm", &ppm) && ppm == 250);
	assert_true(parse_ppm("0.0001%", &ppm) && ppm == 1);
	assert_true(parse_ppm("0%", &ppm) && ppm == 0);
	assert_true(parse_ppm("0.00005%", &ppm) && ppm == 1);
	assert_true(parse_ppm("99.9999%", &ppm) && ppm == 999999);
	assert_true(parse_ppm("12.34%", &ppm) && ppm == 123400);
	ppm = 7;
	for (const char *const *bad = (const char *const[]){"1", "101%", "-1%", "nan%",
		     "1%%", "", "0x1%", "1000001ppm", "0.00001%", "0.4ppm", "0X10ppm",
		     "0x1p3%", "1e1%", "1E1ppm", "1,5%", ".5%", "1.5.0%", "%", "ppm",
		     "inf%", "1 %", " 1%", "0.000000000000001%",
		     "00000000000000000000001%", NULL};
		*bad != NULL; bad++)
		assert_false(parse_ppm(*bad, &ppm));
	assert_int_equal(ppm, 7);
}

TEST(impairments_are_parsed)
{
	struct rocade_impair impair = {.seed = 7};

	assert_null(impair_parse("loss=1%,dup=0.5%", &impair));
	assert_int_equal(impair.loss_ppm, 10000);
	assert_int_equal(impair.duplicate_ppm, 5000);
	assert_null(impair_words_parse("reorder 1% \t corrupt 0.1%", &impair));
	assert_int_equal(impair.loss_ppm, 0);
	assert_int_equal(impair.reorder_ppm, 10000);
	assert_int_equal(impair.corrupt_ppm, 1000);
	assert_null(impair_parse("off", &impair));
	assert_int_equal(impair.reorder_ppm, 0);
	assert_int_equal(impair.seed, 7);
	assert_null(impair_words_parse("loss=1%,dup=0.5%", &impair));
	assert_int_equal(impair.duplicate_ppm, 5000);
	assert_null(impair_words_parse("off", &impair));
	assert_int_equal(impair.duplicate_ppm, 0);
}

TEST(wrong_impairments_change_nothing_and_are_explained)
{
	static const char *const rows[][2] = {
		{"", "it is empty"},
		{"loss", "it has no share behind loss"},
		{"loss=", "it has no share behind loss"},
		{"lost=1%", "it has 'lost' where a kind of fault is expected"},
		{"loss=1%,loss=2%", "it names loss twice"},
		{"loss=1%,dup=1%,loss", "it names loss twice"},
		{"corrupt=150%",
			"it has '150%' for corrupt, which is no share from 1ppm to 100%"},
		{"dup=1", "it has '1' for dup, which is no share from 1ppm to 100%"},
		{"loss,1%,dup,2%", "it has no share behind loss"},
		{"loss=1%=2%",
			"it has '1%=2%' for loss, which is no share from 1ppm to 100%"},
		{"loss 1%", "it has 'loss 1%' where a kind of fault is expected"},
		{"loss=1% dup=2%",
			"it has '1% dup=2%' for loss, which is no share from 1ppm to 100%"},
		{"loss=1%, dup=2%", "it has ' dup' where a kind of fault is expected"},
		{"loss=1%,,dup=2%", "it has '' where a kind of fault is expected"},
		{"loss=1%,", "it has '' where a kind of fault is expected"},
		{",loss=1%", "it has '' where a kind of fault is expected"},
		{"=1%", "it has '' where a kind of fault is expected"},
		{"loss==1%",
			"it has '=1%' for loss, which is no share from 1ppm to 100%"},
		{" ", "it is empty"},
		{"off,loss=1%", "it has 'off' where a kind of fault is expected"},
		{"loss=1%,off", "it has 'off' where a kind of fault is expected"},
	};
	struct rocade_impair impair = {.corrupt_ppm = 5, .seed = 7};
	char longer[300];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *wrong = impair_parse(rows[i][0], &impair);

		assert_non_null(wrong);
		assert_string_equal(wrong, rows[i][1] + strlen("it "));
		assert_string_equal(impair_why(), rows[i][1]);
		assert_string_equal(impair_why(), "");
	}
	memset(longer, ' ', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_non_null(impair_parse(longer, &impair));
	assert_int_equal(impair.corrupt_ppm, 5);
	assert_null(impair_parse("off", &impair));
	assert_string_equal(impair_why(), "");
}

TEST(wrong_words_of_a_command_are_explained)
{
	static const char *const rows[][2] = {
		{"", "is empty"},
		{"loss", "has no share behind loss"},
		{"loss 1% dup", "has no share behind dup"},
		{"loss 1% loss 2%", "names loss twice"},
		{"1% loss", "has '1%' where a kind of fault is expected"},
		{"loss 1% off", "has 'off' where a kind of fault is expected"},
		{"off loss 1%", "has 'off' where a kind of fault is expected"},
		{"loss,1%", "has no share behind loss"},
		{"loss 0X10ppm",
			"has '0X10ppm' for loss, which is no share from 1ppm to 100%"},
	};
	struct rocade_impair impair = {.corrupt_ppm = 5};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *wrong = impair_words_parse(rows[i][0], &impair);

		assert_non_null(wrong);
		assert_string_equal(wrong, rows[i][1]);
	}
	assert_int_equal(impair.corrupt_ppm, 5);
}

TEST(impairments_are_shown)
{
	struct rocade_impair impair = {.seed = 1};
	char text[IMPAIR_TEXT_MAX];

	assert_false(impair_wanted(&impair));
	assert_string_equal(impair_format(&impair, text), "off, seed 1");
	impair = (struct rocade_impair){.loss_ppm = 10000,
		.duplicate_ppm = 500,
		.reorder_ppm = 1000000,
		.corrupt_ppm = 1,
		.seed = UINT64_MAX};
	assert_true(impair_wanted(&impair));
	assert_string_equal(impair_format(&impair, text),
		"loss=1%,dup=0.05%,reorder=100%,corrupt=0.0001%, seed "
		"18446744073709551615");
}
