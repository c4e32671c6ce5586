/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <common/impair_option.h>

#define MILLION 1000000
#define PPM_PER_PERCENT 10000
#define BLANKS " \t"
#define IT "it "
#define NUMBER_MAX 15 /* characters: exact in a double */

static const struct share {
	const char *name;
	size_t offset;
} shares[] = {
	{"loss", offsetof(struct rocade_impair, loss_ppm)},
	{"dup", offsetof(struct rocade_impair, duplicate_ppm)},
	{"reorder", offsetof(struct rocade_impair, reorder_ppm)},
	{"corrupt", offsetof(struct rocade_impair, corrupt_ppm)},
};
#define SHARES (sizeof(shares) / sizeof(shares[0]))

static char why[160]; /* impair_why() */

static uint32_t *
share_of(struct rocade_impair *impair, const struct share *share)
{
	return (uint32_t *)((char *)impair + share->offset);
}

bool
parse_ppm(const char *text, uint32_t *ppm)
{
	uint64_t digits = 0, scale = 0; /* 0: no point so far */
	size_t n = 0;

	/* strtod() would take "0x1p3", and a comma for the point in some locales. */
	for (; n < NUMBER_MAX && (isdigit((unsigned char)text[n]) ||
					 (text[n] == '.' && n > 0 && scale == 0));
		n++) {
		if (text[n] == '.') {
			scale = 1;
			continue;
		}
		digits = digits * 10 + (uint64_t)(text[n] - '0');
		scale *= 10;
	}
	double value = (double)digits / (double)(scale != 0 ? scale : 1);
	if (n != 0 && strcmp(text + n, "%") == 0)
		value *= PPM_PER_PERCENT;
	else if (n == 0 || strcmp(text + n, "ppm") != 0)
		return false;
	/* Less than a half would become 0: nothing, which was not asked for. */
	if (value > MILLION || (value > 0 && value < 0.5))
		return false;
	*ppm = (uint32_t)(value + 0.5);
	return true;
}

__attribute__((format(printf, 1, 2))) static const char *
wrong(const char *format, ...)
{
	va_list args;

	strcpy(why, IT);
	va_start(args, format);
	vsnprintf(why + strlen(IT), sizeof(why) - strlen(IT), format, args);
	va_end(args);
	return why + strlen(IT);
}

/* *named: a bit for each share that has been given. */
static const char *
share_parse(struct rocade_impair *impair, const char *name, const char *value,
	unsigned *named)
{
	unsigned i = 0;

	while (i < SHARES && strcmp(name, shares[i].name) != 0)
		i++;
	if (i == SHARES)
		return wrong("has '%.40s' where a kind of fault is expected", name);
	if (*named & 1u << i)
		return wrong("names %s twice", name);
	*named |= 1u << i;
	if (value == NULL || value[0] == '\0')
		return wrong("has no share behind %s", name);
	if (!parse_ppm(value, share_of(impair, &shares[i])))
		return wrong("has '%.40s' for %s, which is no share from 1ppm to 100%%",
			value, name);
	return NULL;
}

/* "loss=1%,dup=1%" */
static const char *
list_parse(char *list, struct rocade_impair *impair)
{
	const char *refused = NULL;
	unsigned named = 0;
	char *item;

	while (refused == NULL && (item = strsep(&list, ",")) != NULL) {
		const char *name = strsep(&item, "=");

		refused = share_parse(impair, name, item, &named);
	}
	return refused;
}

/* "loss 1% dup 1%" */
static const char *
words_parse(char *words, struct rocade_impair *impair)
{
	const char *refused = NULL;
	char *word, *state;
	unsigned named = 0;

	for (word = strtok_r(words, BLANKS, &state); word != NULL && refused == NULL;
		word = strtok_r(NULL, BLANKS, &state))
		refused =
			share_parse(impair, word, strtok_r(NULL, BLANKS, &state), &named);
	return refused;
}

static const char *
parse_by(const char *text, struct rocade_impair *impair,
	const char *(*parse)(char *text, struct rocade_impair *impair))
{
	struct rocade_impair new = {.seed = impair->seed};
	const char *refused = NULL;
	char copy[256];

	if (strlen(text) >= sizeof(copy))
		return wrong("is longer than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	if (copy[strspn(copy, BLANKS)] == '\0')
		return wrong("is empty");
	if (strcmp(copy, "off") != 0)
		refused = parse(copy, &new);
	if (refused != NULL)
		return refused;
	why[0] = '\0';
	*impair = new;
	return NULL;
}

const char *
impair_parse(const char *text, struct rocade_impair *impair)
{
	return parse_by(text, impair, list_parse);
}

const char *
impair_words_parse(const char *text, struct rocade_impair *impair)
{
	return parse_by(
		text, impair, strpbrk(text, ",=") != NULL ? list_parse : words_parse);
}

const char *
impair_why(void)
{
	static char said[sizeof(why)];

	strcpy(said, why);
	why[0] = '\0';
	return said;
}

bool
impair_wanted(const struct rocade_impair *impair)
{
	return (impair->loss_ppm | impair->duplicate_ppm | impair->reorder_ppm |
		       impair->corrupt_ppm) != 0;
}

const char *
impair_format(const struct rocade_impair *impair, char text[IMPAIR_TEXT_MAX])
{
	struct rocade_impair copy = *impair;
	size_t len = 0;

	for (unsigned i = 0; i < SHARES; i++) {
		uint32_t ppm = *share_of(&copy, &shares[i]);

		if (ppm != 0)
			len += (size_t)snprintf(text + len, IMPAIR_TEXT_MAX - len,
				"%s=%g%%,", shares[i].name,
				(double)ppm / PPM_PER_PERCENT);
	}
	snprintf(text + len, IMPAIR_TEXT_MAX - len, "%s seed %" PRIu64,
		len == 0 ? "off," : "", impair->seed);
	return text;
}
