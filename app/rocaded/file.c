/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file. rte_cfgfile parses it, but reports neither line numbers nor the
 * reason of an error. So the file is checked first, by the same rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#include "settings.h"

#define ENTRIES_MAX 256
#define SECTION_EAL "eal"
#define COMMENT '#'

/* Line numbers of the entries, in their order. */
struct lines {
	unsigned line[ENTRIES_MAX];
	unsigned count;
};

static char *
trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\r\n", end[-1]) != NULL)
		*--end = '\0';
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

static bool
section_known(const char *name)
{
	for (unsigned i = 0; i < row_count; i++) {
		if (strcmp(rows[i].section, name) == 0)
			return true;
	}
	return strcmp(name, SECTION_EAL) == 0;
}

/* Checks a line, without its comment. Returns 0, or -1 with the error. *in: whether a
 * section has begun. *entry: whether the line is an entry. */
static int
line_check(char *text, bool *in, bool *entry, char err[ERR_MAX])
{
	char *equals = strchr(text, '=');

	*entry = false;
	if (text[0] == '\0')
		return 0;
	if (text[0] == '[') {
		size_t len = strlen(text);

		if (text[len - 1] != ']') {
			snprintf(err, ERR_MAX, "invalid section '%s': expected [NAME]",
				text);
			return -1;
		}
		text[len - 1] = '\0';
		*in = section_known(text + 1);
		if (!*in)
			snprintf(err, ERR_MAX,
				"unknown section [%s]: expected [daemon], [eal], [port] or "
				"[clients]",
				text + 1);
		return *in ? 0 : -1;
	}
	if (equals == NULL || equals == text) {
		snprintf(err, ERR_MAX,
			"invalid line '%s': expected [section] or key = value", text);
		return -1;
	}
	if (!*in) {
		snprintf(err, ERR_MAX,
			"entry '%s' before the first section: expected [daemon], "
			"[eal], [port] or [clients]",
			text);
		return -1;
	}
	*entry = true;
	*equals = '\0';
	if (strlen(trim(text)) >= CFG_NAME_LEN ||
		strlen(trim(equals + 1)) >= CFG_VALUE_LEN) {
		snprintf(err, ERR_MAX,
			"%.20s...: key longer than 63 characters, or value longer than %d",
			text, CFG_VALUE_LEN - 1);
		return -1;
	}
	return 0;
}

/* Checks all lines, and collects the line numbers of the entries. */
static int
lines_check(FILE *file, const char *path, struct lines *lines, char err[ERR_MAX])
{
	char why[ERR_MAX];
	char *text = NULL;
	size_t room = 0;
	unsigned number = 0;
	bool in = false, entry;
	int rc = 0;

	while (rc == 0 && getline(&text, &room, file) >= 0) {
		char *comment = strchr(text, COMMENT);

		number++;
		if (comment != NULL)
			*comment = '\0';
		rc = line_check(trim(text), &in, &entry, why);
		if (rc == 0 && entry && lines->count == ENTRIES_MAX) {
			snprintf(why, sizeof(why), "more than %d keys", ENTRIES_MAX);
			rc = -1;
		}
		if (rc == 0 && entry)
			lines->line[lines->count++] = number;
	}
	if (rc != 0)
		snprintf(err, ERR_MAX, "%s:%u: %.400s", path, number, why);
	free(text);
	return rc;
}

/* Adds EAL arguments: "m = 256" is -m 256, "vdev = net_tap0" is --vdev=net_tap0, "no-huge
 * =" is --no-huge. */
static int
eal_add(struct settings *s, const struct rte_cfgfile_entry *e)
{
	char text[CFG_NAME_LEN + CFG_VALUE_LEN + 4];
	bool brief = strlen(e->name) == 1, bare = e->value[0] == '\0';

	if (s->eal_count + 2 > EAL_ARGS_MAX)
		return -1;
	snprintf(text, sizeof(text), "%s%s%s%s", brief ? "-" : "--", e->name,
		brief || bare ? "" : "=", brief ? "" : e->value);
	s->eal[s->eal_count] = settings_text(s, text);
	if (s->eal[s->eal_count++] == NULL)
		return -1;
	if (!brief || bare)
		return 0;
	s->eal[s->eal_count] = settings_text(s, e->value);
	return s->eal[s->eal_count++] != NULL ? 0 : -1;
}

static void
keys_list(const char *section, char *text, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; i < row_count && len < size; i++) {
		if (strcmp(rows[i].section, section) == 0)
			len += (size_t)snprintf(text + len, size - len, "%s%s",
				len != 0 ? ", " : "", rows[i].key);
	}
}

static int
entry_read(struct settings *s, const char *section, const struct rte_cfgfile_entry *e,
	unsigned line, char err[ERR_MAX])
{
	char why[ERR_MAX], valid[256] = "";
	const struct row *row;

	if (strcmp(section, SECTION_EAL) == 0) {
		if (eal_add(s, e) == 0)
			return 0;
		snprintf(err, ERR_MAX, "%s:%u: %s: more than %d EAL arguments", s->file,
			line, e->name, EAL_ARGS_MAX);
		return -1;
	}
	row = settings_row_find(section, e->name);
	if (row == NULL) {
		keys_list(section, valid, sizeof(valid));
		snprintf(err, ERR_MAX,
			"%s:%u: %s: unknown key in [%s]: expected one of %s", s->file,
			line, e->name, section, valid);
		return -1;
	}
	if (s->line[row - rows] != 0) {
		snprintf(err, ERR_MAX, "%s:%u: %s: duplicate key, first set in line %u",
			s->file, line, e->name, s->line[row - rows]);
		return -1;
	}
	if (settings_set(s, row, e->value, line, why) == 0)
		return 0;
	snprintf(err, ERR_MAX, "%s:%u: %s: %.300s", s->file, line, e->name, why);
	return -1;
}

static int
entries_read(struct settings *s, struct rte_cfgfile *cfg, const struct lines *lines,
	char err[ERR_MAX])
{
	int sections = rte_cfgfile_num_sections(cfg, "", 0);
	struct rte_cfgfile_entry entries[ENTRIES_MAX];
	char name[CFG_NAME_LEN];
	unsigned at = 0;

	for (int i = 0; i < sections; i++) {
		int n = rte_cfgfile_section_entries_by_index(
			cfg, i, name, entries, ENTRIES_MAX);

		for (int j = 0; j < n; j++, at++) {
			unsigned line = at < lines->count ? lines->line[at] : 0;

			if (entry_read(s, name, &entries[j], line, err) != 0)
				return -1;
		}
	}
	return 0;
}

int
file_read(struct settings *s, const char *path, char err[ERR_MAX])
{
	struct rte_cfgfile_parameters params = {.comment_character = COMMENT};
	FILE *file = fopen(path, "r");
	struct lines lines = {.count = 0};
	struct rte_cfgfile *cfg;
	int rc;

	s->file = path;
	if (file == NULL) {
		snprintf(err, ERR_MAX, "%s: %s", path, strerror(errno));
		return -1;
	}
	rc = lines_check(file, path, &lines, err);
	fclose(file);
	if (rc != 0)
		return rc;
	cfg = rte_cfgfile_load_with_params(path, CFG_FLAG_EMPTY_VALUES, &params);
	if (cfg == NULL) {
		snprintf(err, ERR_MAX, "%s: cannot be parsed", path);
		return -1;
	}
	rc = entries_read(s, cfg, &lines, err);
	rte_cfgfile_close(cfg);
	return rc;
}
