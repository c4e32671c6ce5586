/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file: [section], key = value, # comment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <common/number.h>

#include "settings.h"

#define KEY_MAX 63
#define VALUE_MAX (ADDRESSES_MAX - 1) /* the longest value of an option */
#define SECTIONS_TEXT "[daemon], [eal], [port] or [clients]"

enum { EAL = CLIENTS + 1 };
static const char *const sections[] = {[NO_SECTION] = "",
	[DAEMON] = "daemon",
	[PORT] = "port",
	[CLIENTS] = "clients",
	[EAL] = "eal",
	NULL};

static char *
trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\r", end[-1]) != NULL)
		*--end = '\0';
	return text + strspn(text, " \t");
}

/* Reads "[NAME]". */
static int
section_read(char *text, uint64_t *section, char err[ERR_MAX])
{
	size_t len = strlen(text);

	if (text[len - 1] != ']')
		return error_set(err, "invalid section '%s': expected [NAME]", text);
	text[len - 1] = '\0';
	if (!parse_word(text + 1, sections + 1, section))
		return error_set(
			err, "unknown section [%s]: expected " SECTIONS_TEXT, text + 1);
	*section += 1;
	return 0;
}

/* Adds EAL arguments: "m = 256" is -m 256, "vdev = net_tap0" is --vdev=net_tap0, "no-huge
 * =" is --no-huge. */
static int
eal_add(struct conf *s, const char *key, const char *value, char err[ERR_MAX])
{
	bool brief = key[1] == '\0', bare = value[0] == '\0';
	unsigned n = brief && !bare ? 2 : 1;

	if (s->eal_count + n > EAL_ARGS_MAX)
		return error_set(
			err, "%s: more than %d EAL arguments", key, EAL_ARGS_MAX);
	if (asprintf(&s->eal[s->eal_count], "%s%s%s%s", brief ? "-" : "--", key,
		    brief || bare ? "" : "=", brief ? "" : value) < 0)
		return error_set(err, "out of memory");
	s->eal_count++;
	if (n == 2 && (s->eal[s->eal_count++] = strdup(value)) == NULL)
		return error_set(err, "out of memory");
	return 0;
}

static int
key_unknown(const char *key, uint64_t section, char err[ERR_MAX])
{
	const struct options *o = &rocaded_options;
	char valid[256];
	size_t len = 0;

	for (unsigned i = 0; i < o->count && len < sizeof(valid); i++) {
		if ((o->rows[i].use & SECTION) == section)
			len += (size_t)snprintf(valid + len, sizeof(valid) - len, "%s%s",
				len != 0 ? ", " : "", o->rows[i].name);
	}
	return error_set(err, "%s: unknown key in [%s]: expected one of %s", key,
		sections[section], valid);
}

static int
entry_read(struct conf *s, uint64_t section, const char *key, const char *value,
	unsigned line, char err[ERR_MAX])
{
	const struct option_row *row;
	char expected[ERR_MAX];
	const char *why;
	unsigned *first;

	if (strlen(key) > KEY_MAX || strlen(value) > VALUE_MAX)
		return error_set(err,
			"%.20s...: key longer than %d characters, or value longer than %d",
			key, KEY_MAX, VALUE_MAX);
	if (section == EAL)
		return eal_add(s, key, value, err);
	row = option_find(&rocaded_options, key);
	if (row == NULL || (row->use & SECTION) != section)
		return key_unknown(key, section, err);
	first = &s->line[row - rocaded_options.rows];
	if (*first != 0)
		return error_set(
			err, "%s: duplicate key, first set in line %u", key, *first);
	if (!option_store(row, s, value, expected)) {
		why = rocaded_options.why();
		return error_set(err, "%s: invalid value '%.300s': %s%s%.300s", key,
			value, why, why[0] != '\0' ? "; " : "", expected);
	}
	*first = line;
	return 0;
}

/* Reads a line, without its comment. *section: of the lines before. */
static int
line_read(struct conf *s, char *text, uint64_t *section, unsigned line, char err[ERR_MAX])
{
	char *equals = strchr(text, '=');

	if (text[0] == '\0')
		return 0;
	if (text[0] == '[')
		return section_read(text, section, err);
	if (equals == NULL || equals == text)
		return error_set(err,
			"invalid line '%s': expected [section] or key = value", text);
	if (*section == NO_SECTION)
		return error_set(err,
			"entry '%s' before the first section: expected " SECTIONS_TEXT,
			text);
	*equals = '\0';
	return entry_read(s, *section, trim(text), trim(equals + 1), line, err);
}

static int
file_load(struct conf *s, const char *path, char err[ERR_MAX])
{
	FILE *file = fopen(path, "r");
	size_t len;
	int rc = 0;

	if (file == NULL)
		return error_set(err, "%s: %s", path, strerror(errno));
	len = fread(s->text, 1, sizeof(s->text), file);
	if (ferror(file))
		rc = error_set(err, "%s: %s", path, strerror(errno));
	else if (len == sizeof(s->text) || strlen(s->text) != len)
		rc = error_set(
			err, "%s: expected a text of at most %d bytes", path, FILE_MAX);
	fclose(file);
	return rc;
}

int
file_read(struct conf *s, const char *path, char err[ERR_MAX])
{
	char why[ERR_MAX], *rest = s->text, *text;
	uint64_t section = NO_SECTION;
	int rc = file_load(s, path, err);

	s->file = path;
	for (unsigned line = 1; rc == 0 && (text = strsep(&rest, "\n")) != NULL; line++) {
		text[strcspn(text, "#")] = '\0';
		rc = line_read(s, trim(text), &section, line, why);
		if (rc != 0)
			error_set(err, "%s:%u: %.700s", path, line, why);
	}
	return rc;
}
