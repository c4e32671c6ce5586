/* SPDX-License-Identifier: BSD-3-Clause */
/* Words and numbers of a line, and errors about them. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "faults/fault_words.h"

#define SHOWN_MAX 40      /* bytes of a word in an error */
#define TIME_MAX 86400000 /* milliseconds: a day */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
is_sign(char c)
{
	return c == ':' || c == '"';
}

bool
fault_word_is(struct word w, const char *text)
{
	return w.len == strlen(text) && memcmp(w.at, text, w.len) == 0;
}

/* Copies a word for an error. A byte that cannot be printed becomes a question mark. */
static const char *
word_shown(struct word w, char out[SHOWN_MAX + 4])
{
	size_t len = w.len < SHOWN_MAX ? w.len : SHOWN_MAX;

	for (size_t i = 0; i < len; i++)
		out[i] = isprint((unsigned char)w.at[i]) ? w.at[i] : '?';
	strcpy(out + len, w.len > len ? "..." : "");
	return out;
}

bool
fault_refuse(struct parser *p, int err, struct word w, const char *valid)
{
	char shown[SHOWN_MAX + 4];
	unsigned column = (unsigned)(w.at - p->begin) + 1;

	p->err = err;
	if (w.len == 0)
		snprintf(p->why, FAULT_WHY_MAX,
			"line %u, column %u: the line ends too early; valid: %s", p->line,
			column, valid);
	else
		snprintf(p->why, FAULT_WHY_MAX,
			"line %u, column %u: '%s' is not known; valid: %s", p->line,
			column, word_shown(w, shown), valid);
	return false;
}

struct word
fault_word_next(struct parser *p)
{
	struct word w;

	while (p->at < p->end && is_blank(*p->at))
		p->at++;
	w = (struct word){.at = p->at};
	if (p->at == p->end || *p->at == '#')
		return w;
	if (is_sign(*p->at)) {
		p->at++;
	} else {
		while (p->at < p->end && !is_blank(*p->at) && !is_sign(*p->at) &&
			*p->at != '#')
			p->at++;
	}
	w.len = (size_t)(p->at - w.at);
	return w;
}

bool
fault_expect(struct parser *p, const char *text)
{
	struct word w = fault_word_next(p);

	return fault_word_is(w, text) || fault_refuse(p, EINVAL, w, text);
}

size_t
fault_digits_read(struct word w, uint64_t *number)
{
	size_t n = 0;

	*number = 0;
	for (; n < w.len && isdigit((unsigned char)w.at[n]); n++) {
		*number = *number * 10 + (uint64_t)(w.at[n] - '0');
		if (*number > FAULT_NUMBER_MAX)
			return 0;
	}
	return *number != 0 ? n : 0;
}

bool
fault_count_read(struct parser *p, uint64_t *number)
{
	struct word w = fault_word_next(p);
	size_t n = fault_digits_read(w, number);

	return (n != 0 && n == w.len) || fault_refuse(p, EINVAL, w, NUMBER_VALID);
}

bool
fault_time_read(struct parser *p, unsigned least, uint32_t *ms, struct word *w)
{
	struct word unit = *w = fault_word_next(p);
	uint64_t number = 0, scale;
	size_t n = fault_digits_read(*w, &number);

	if (n == 0 && least == 0 && w->len > 1 && w->at[0] == '0')
		n = 1;
	unit.at += n;
	unit.len -= n;
	scale = fault_word_is(unit, "ms") ? 1 : fault_word_is(unit, "s") ? 1000 : 0;
	if (n == 0 || scale == 0 || number > TIME_MAX / scale)
		return fault_refuse(p, EINVAL, *w,
			least == 0 ? "a time from 0s to 86400s, such as 500ms or 2s"
				   : "a time from 1ms to 86400s, such as 500ms or 2s");
	*ms = (uint32_t)(number * scale);
	return true;
}

bool
fault_line_end_read(struct parser *p, struct word w, const char *valid)
{
	return w.len == 0 || fault_refuse(p, EINVAL, w, valid);
}
