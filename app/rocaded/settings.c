/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>

#include "settings.h"

#define ADDRESS_DEFAULT "192.0.2.1/24"
#define HELP_COLUMN 24

const struct row rows[] = {
#define ROW(section_, key_, kind_, member_, min_, max_, live_, argument_, text_)         \
	{.section = #section_,                                                           \
		.key = key_,                                                             \
		.member = #member_,                                                      \
		.kind = KIND_##kind_,                                                    \
		.offset = offsetof(struct settings, member_),                            \
		.min = min_,                                                             \
		.max = max_,                                                             \
		.live = live_,                                                           \
		.argument = argument_,                                                   \
		.text = text_},
#include "settings.def"
};
const unsigned row_count = sizeof(rows) / sizeof(rows[0]);
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= SETTINGS_MAX, "SETTINGS_MAX");

static const char *const levels[] = {"error", "warning", "info", "debug"};

void
settings_init(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	s->conf.size = sizeof(s->conf);
	s->log_level = ROCADE_LOG_WARNING;
}

void
settings_fini(struct settings *s)
{
	for (unsigned i = 0; i < s->text_count; i++)
		free(s->texts[i]);
	s->text_count = 0;
}

char *
settings_text(struct settings *s, const char *text)
{
	char *copy;

	if (s->text_count == sizeof(s->texts) / sizeof(s->texts[0]))
		return NULL;
	copy = strdup(text);
	if (copy != NULL)
		s->texts[s->text_count++] = copy;
	return copy;
}

const struct row *
settings_row_find(const char *section, const char *key)
{
	for (unsigned i = 0; i < row_count; i++) {
		if ((section == NULL || strcmp(rows[i].section, section) == 0) &&
			strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	return NULL;
}

static int
setting_number_read(
	const struct row *row, const char *text, uint32_t *out, char err[ERR_MAX])
{
	int base = row->kind == KIND_OCTAL ? 8 : 10;
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, base);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' ||
		value < row->min || value > row->max) {
		snprintf(err, ERR_MAX,
			base == 8 ? "invalid value '%s': expected an octal mode, %o to %o"
				  : "invalid value '%s': expected %u to %u",
			text, row->min, row->max);
		return -1;
	}
	*out = (uint32_t)value;
	return 0;
}

/* Stores the index of a word in a list. */
static int
word_read(const char *text, const char *const *words, unsigned n, const char *valid,
	uint32_t *out, char err[ERR_MAX])
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	snprintf(err, ERR_MAX, "invalid value '%s': expected %s", text, valid);
	return -1;
}

static void
blanks_remove(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (*text != ' ' && *text != '\t')
			*to++ = *text;
	}
	*to = '\0';
}

int
settings_set(struct settings *s, const struct row *row, const char *value, unsigned line,
	char err[ERR_MAX])
{
	static const char *const flags[] = {"no", "yes"};
	void *place = (char *)s + row->offset;
	char *copy;
	int rc = 0;

	switch (row->kind) {
	case KIND_FLAG:
		rc = word_read(value, flags, 2, "yes or no", place, err);
		break;
	case KIND_LEVEL:
		rc = word_read(
			value, levels, 4, "error, warning, info or debug", place, err);
		break;
	case KIND_NUMBER:
	case KIND_OCTAL:
		rc = setting_number_read(row, value, place, err);
		break;
	case KIND_TEXT:
	case KIND_LIST:
		copy = settings_text(s, value);
		if (copy != NULL && row->kind == KIND_LIST)
			blanks_remove(copy);
		if (copy == NULL) {
			snprintf(err, ERR_MAX, "out of memory");
			rc = -1;
		}
		*(const char **)place = copy;
		break;
	}
	if (rc == 0)
		s->line[row - rows] = line;
	return rc;
}

/* Finds the row that an error of the library names: "addresses: ..." is the row of
 * conf.addresses. */
static const struct row *
row_of_error(const char *sentence, const char **rest)
{
	const char *colon = strstr(sentence, ": ");

	for (unsigned i = 0; colon != NULL && i < row_count; i++) {
		const char *dot = strrchr(rows[i].member, '.');
		const char *name = dot != NULL ? dot + 1 : rows[i].member;

		if (strlen(name) == (size_t)(colon - sentence) &&
			strncmp(name, sentence, strlen(name)) == 0) {
			*rest = colon + 2;
			return &rows[i];
		}
	}
	return NULL;
}

static void
row_error(const struct settings *s, const struct row *row, const char *why,
	char err[ERR_MAX])
{
	unsigned line = s->line[row - rows];

	if (line != 0)
		snprintf(err, ERR_MAX, "%s:%u: %s: %s", s->file, line, row->key, why);
	else
		snprintf(err, ERR_MAX, "--%s: %s", row->key, why);
}

int
settings_check(const struct settings *s, char err[ERR_MAX])
{
	struct rocade_daemon_conf conf = s->conf;
	const struct row *row;
	const char *rest;

	conf.vlan = (uint16_t)s->vlan;
	if (conf.addresses == NULL && s->local)
		conf.addresses = ADDRESS_DEFAULT;
	if (rocade_daemon_check(&conf) == 0)
		return 0;
	row = row_of_error(rocade_error(), &rest);
	if (row != NULL)
		row_error(s, row, rest, err);
	else
		snprintf(err, ERR_MAX, "%s", rocade_error());
	return -1;
}

static bool
row_equal(const struct row *row, const struct settings *a, const struct settings *b)
{
	const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
	const char *s, *t;

	if (row->kind != KIND_TEXT && row->kind != KIND_LIST)
		return memcmp(x, y, sizeof(uint32_t)) == 0;
	s = *(const char *const *)x;
	t = *(const char *const *)y;
	return s == NULL || t == NULL ? s == t : strcmp(s, t) == 0;
}

void
settings_need_restart(const struct settings *now, const struct settings *wanted,
	char *text, size_t size)
{
	size_t len = 0;
	bool eal = now->eal_count == wanted->eal_count;

	text[0] = '\0';
	for (unsigned i = 0; i < row_count; i++) {
		if (rows[i].live || row_equal(&rows[i], now, wanted) || len >= size)
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s",
			len != 0 ? ", " : "", rows[i].key);
	}
	for (unsigned i = 0; eal && i < now->eal_count; i++)
		eal = strcmp(now->eal[i], wanted->eal[i]) == 0;
	if (!eal && len < size)
		snprintf(text + len, size - len, "%s[eal]", len != 0 ? ", " : "");
}

static void
help_row(FILE *to, const struct row *row)
{
	const char *line = row->text;
	int width = fprintf(
		to, "  --%s%s%s", row->key, row->argument[0] ? " " : "", row->argument);

	while (line != NULL) {
		const char *end = strchr(line, '\n');
		int len = end != NULL ? (int)(end - line) : (int)strlen(line);

		fprintf(to, "%*s%.*s\n", width < HELP_COLUMN ? HELP_COLUMN - width : 1,
			"", len, line);
		line = end != NULL ? end + 1 : NULL;
		width = 0;
	}
}

void
settings_help_print(FILE *to)
{
	fputs("Usage: " PROGRAM " --local [OPTION]...\n"
	      "       " PROGRAM " EAL-ARGUMENT... -- [OPTION]...\n"
	      "       " PROGRAM " --config FILE [OPTION]...\n"
	      "Provides RDMA to the programs of this machine that rocade-run(1) starts: "
	      "between\neach other, or over a DPDK port.\n\n"
	      "  --config FILE         read settings from FILE; options override them\n"
	      "  --check-config FILE   check FILE and the other options, then exit\n",
		to);
	for (unsigned i = 0; i < row_count; i++)
		help_row(to, &rows[i]);
	fputs("  --help, --version\n", to);
}
