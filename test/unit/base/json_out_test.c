/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "case.h"

static struct json_out
json_open(char *buf, size_t size)
{
	FILE *to = fmemopen(buf, size, "w");

	assert_non_null(to);
	return (struct json_out){.to = to};
}

static void
check_closed(const struct json_out *j, const char *buf, const char *expected)
{
	assert_int_equal(j->depth, 0);
	assert_int_equal(fclose(j->to), 0);
	assert_string_equal(buf, expected);
}

TEST(containers_nest)
{
	char buf[512];
	struct json_out j = json_open(buf, sizeof(buf));

	json_out_object(&j, NULL);
	json_out_uint(&j, "a", 1);
	json_out_array(&j, "b");
	json_out_uint(&j, NULL, 2);
	json_out_object(&j, NULL);
	json_out_end(&j);
	json_out_array(&j, NULL);
	json_out_end(&j);
	json_out_bool(&j, NULL, true);
	json_out_end(&j);
	json_out_object(&j, "c");
	json_out_text(&j, "d", "e");
	json_out_bool(&j, "f", false);
	json_out_end(&j);
	json_out_raw(&j, "g");
	fputs("null", j.to);
	json_out_uint(&j, "h", 3);
	json_out_end(&j);
	check_closed(&j, buf,
		"{\"a\": 1, \"b\": [2, {}, [], true], \"c\": {\"d\": \"e\", "
		"\"f\": false}, \"g\": null, \"h\": 3}");
}

/* As deep as is possible, each time with arrays where objects were before. */
TEST(depth_is_kept)
{
	char buf[1024], expected[1024] = "[";
	struct json_out j = json_open(buf, sizeof(buf));

	json_out_array(&j, NULL);
	for (unsigned turn = 0; turn < 2; turn++) {
		if (turn != 0)
			strcat(expected, ", ");
		for (unsigned i = 0; i < 30; i++) {
			if (turn != 0) {
				json_out_array(&j, NULL);
				strcat(expected, "[");
			} else {
				json_out_object(&j, i != 0 ? "k" : NULL);
				strcat(expected, i != 0 ? "\"k\": {" : "{");
			}
		}
		for (unsigned i = 0; i < 30; i++) {
			json_out_end(&j);
			strcat(expected, turn != 0 ? "]" : "}");
		}
	}
	json_out_end(&j);
	strcat(expected, "]");
	check_closed(&j, buf, expected);
}

TEST(numbers_are_bounded)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {{0, "0"}, {UINT32_MAX, "4294967295"},
		{INT64_MAX, "9223372036854775807"},
		{(uint64_t)INT64_MAX + 1, "9223372036854775807"},
		{UINT64_MAX, "9223372036854775807"}};
	char buf[64];

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct json_out j = json_open(buf, sizeof(buf));

		json_out_uint(&j, NULL, cases[i].value);
		check_closed(&j, buf, cases[i].text);
	}
}

TEST(text_is_escaped)
{
	static const struct {
		const char *text, *json;
	} cases[] = {{"", ""}, {"plain ~\x7f/", "plain ~\x7f/"},
		{"\"q\"", "\\u0022q\\u0022"}, {"a\\b", "a\\u005cb"},
		{"\x01\b\t\n\f\r\x1f ",
			"\\u0001\\u0008\\u0009\\u000a\\u000c\\u000d\\u001f "},
		/* the first and the last value of each length */
		{"\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf"},
		{"\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf"},
		{"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
		{"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
		{"\x80", "\\ufffd"},                       /* continuation alone */
		{"\xc0\xaf", "\\ufffd\\ufffd"},            /* "/" in two bytes */
		{"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"}, /* too long */
		{"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},
		{"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            /* surrogate */
		{"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* U+110000 */
		{"\xf5\xff", "\\ufffd\\ufffd"},
		{"\xe2\x82", "\\ufffd\\ufffd"}, /* truncated */
		{"\xe2\"\xe2", "\\ufffd\\u0022\\ufffd"}};
	char buf[128], expected[128];

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct json_out j = json_open(buf, sizeof(buf));

		json_out_text(&j, NULL, cases[i].text);
		snprintf(expected, sizeof(expected), "\"%s\"", cases[i].json);
		check_closed(&j, buf, expected);
	}
}

TEST(full_stream_reports_an_error)
{
	FILE *full = fopen("/dev/full", "w");
	struct json_out j = {.to = full};

	assert_non_null(full);
	json_out_object(&j, NULL);
	json_out_text(&j, "text", "value");
	json_out_end(&j);
	assert_int_equal(fclose(full), EOF);
}
