/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <inttypes.h>

#include "base/json_out.h"

void
json_out_raw(struct json_out *j, const char *key)
{
	uint32_t bit = UINT32_C(1) << j->depth;

	if ((j->filled & bit) != 0)
		fputs(", ", j->to);
	j->filled |= bit;
	if (key != NULL)
		fprintf(j->to, "\"%s\": ", key);
}

static void
container_open(struct json_out *j, const char *key, bool array)
{
	uint32_t bit;

	json_out_raw(j, key);
	assert(j->depth < 31);
	bit = UINT32_C(1) << ++j->depth;
	j->arrays = array ? j->arrays | bit : j->arrays & ~bit;
	j->filled &= ~bit;
	fputc(array ? '[' : '{', j->to);
}

void
json_out_object(struct json_out *j, const char *key)
{
	container_open(j, key, false);
}

void
json_out_array(struct json_out *j, const char *key)
{
	container_open(j, key, true);
}

void
json_out_end(struct json_out *j)
{
	assert(j->depth != 0);
	fputc((j->arrays >> j->depth & 1) != 0 ? ']' : '}', j->to);
	j->depth--;
}

void
json_out_uint(struct json_out *j, const char *key, uint64_t value)
{
	json_out_raw(j, key);
	fprintf(j->to, "%" PRIu64, RTE_MIN(value, (uint64_t)INT64_MAX));
}

void
json_out_bool(struct json_out *j, const char *key, bool value)
{
	json_out_raw(j, key);
	fputs(value ? "true" : "false", j->to);
}

/* Returns the length of the well-formed UTF-8 sequence (RFC 3629, section 4) at the start
 * of the text, or 0. */
static unsigned
utf8_len(const uint8_t *text)
{
	uint8_t first = text[0], least = 0x80, most = 0xBF;
	unsigned len = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

	if ((first >= 0x80 && first < 0xC2) || first > 0xF4)
		return 0;
	if (first == 0xE0)
		least = 0xA0; /* below: a shorter sequence has the same value */
	else if (first == 0xF0)
		least = 0x90;
	else if (first == 0xED)
		most = 0x9F; /* above: surrogates */
	else if (first == 0xF4)
		most = 0x8F; /* above: beyond U+10FFFF */
	/* The NUL at the end of the text ends a truncated sequence. */
	for (unsigned i = 1; i < len; i++, least = 0x80, most = 0xBF) {
		if (text[i] < least || text[i] > most)
			return 0;
	}
	return len;
}

void
json_out_text(struct json_out *j, const char *key, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	json_out_raw(j, key);
	fputc('"', j->to);
	while (*at != '\0') {
		unsigned len = utf8_len(at);

		if (len == 0)
			fputs("\\ufffd", j->to);
		else if (*at < ' ' || *at == '"' || *at == '\\')
			fprintf(j->to, "\\u%04x", *at);
		else
			fwrite(at, 1, len, j->to);
		at += len != 0 ? len : 1;
	}
	fputc('"', j->to);
}
