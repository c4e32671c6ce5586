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
#define BLANKS " ,=\t"
#define IT "it "

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
	char *end;

	if (!isdigit((unsigned char)text[0]) || strncmp(text, "0x", 2) == 0)
		return false;
	double value = strtod(text, &end);
	if (strcmp(end, "%") == 0)
		value *= PPM_PER_PERCENT;
	else if (strcmp(end, "ppm") != 0)
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
	if (value == NULL)
		return wrong("has no share behind %s", name);
	if (!parse_ppm(value, share_of(impair, &shares[i])))
		return wrong("has '%.40s' for %s, which is no share from 1ppm to 100%%",
			value, name);
	return NULL;
}

const char *
impair_parse(const char *text, struct rocade_impair *impair)
{
	struct rocade_impair new = {.seed = impair->seed};
	const char *refused = NULL;
	char copy[256], *word, *state;
	unsigned named = 0;

	if (strlen(text) >= sizeof(copy))
		return wrong("is longer than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	word = strtok_r(copy, BLANKS, &state);
	if (word == NULL)
		return wrong("is empty");
	if (strcmp(word, "off") == 0) {
		if (strtok_r(NULL, BLANKS, &state) != NULL)
			return wrong("has more than off");
		word = NULL;
	}
	for (; word != NULL && refused == NULL; word = strtok_r(NULL, BLANKS, &state))
		refused = share_parse(&new, word, strtok_r(NULL, BLANKS, &state), &named);
	if (refused != NULL)
		return refused;
	why[0] = '\0';
	*impair = new;
	return NULL;
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
