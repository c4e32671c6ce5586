/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>

#include <common/impair_option.h>

#include "settings.h"

static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const filter_modes[] = {"kill", "log", "off", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};

static bool
socket_mode_set(struct conf *s, const char *value)
{
	unsigned long mode = strtoul(value, NULL, 8);

	s->daemon.socket_mode = (uint32_t)mode;
	return value[strspn(value, "01234567")] == '\0' && mode >= 1 && mode <= 0777;
}

/* Copies the list without blanks. */
static bool
addresses_set(struct conf *s, const char *value)
{
	size_t len = 0;

	for (; *value != '\0' && len < sizeof(s->addresses) - 1; value++) {
		if (*value != ' ' && *value != '\t')
			s->addresses[len++] = *value;
	}
	s->addresses[len] = '\0';
	s->daemon.addresses = s->addresses;
	return *value == '\0';
}

static bool
impair_setting_set(struct conf *s, const char *value)
{
	return impair_parse(value, &s->daemon.impair) == NULL;
}

static bool
metrics_set(struct conf *s, const char *value)
{
	return metrics_address_read(value, &s->metrics);
}

#define MEMBER(m) OPTION_MEMBER(struct conf, m)
#define NUM(section, n, a, m, lo, hi, live, t)                                           \
	{OPTION_NUM, 0, n, a, MEMBER(m), .min = lo, .max = hi, .text = t,                \
		.use = section | live},
#define TEXT(section, n, a, m, live, t)                                                  \
	{OPTION_TEXT, 0, n, a, MEMBER(m), .text = t, .use = section | live},
#define WORD(section, n, a, m, w, live, t)                                               \
	{OPTION_WORD, 0, n, a, MEMBER(m), .max = 1, .words = w, .text = t,               \
		.use = section | live},
#define FN(section, n, a, m, fn, v, live, t)                                             \
	{OPTION_FN, 0, n, a, MEMBER(m), .set = fn, .valid = v, .text = t,                \
		.use = section | live},
static const struct option_row rows[] = {
	{OPTION_TEXT, 0, "config", "FILE", MEMBER(config),
		.text = "read settings from FILE; options override them"},
	{OPTION_TEXT, 0, "check-config", "FILE", MEMBER(check_config),
		.text = "check FILE and the other options, then exit"},
#include "settings.def"
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(ROWS <= SETTINGS_MAX, "SETTINGS_MAX");

/* The option overrides the file. */
static void
option_stored(struct conf *s, const struct option_row *row)
{
	s->line[row - rows] = 0;
}

#ifdef HAVE_SECCOMP
#define NO_SECCOMP ""
#else
#define NO_SECCOMP                                                                       \
	"\nThis program was built without libseccomp: --seccomp has no effect.\n"
#endif

const struct options rocaded_options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " --local [OPTION]...\n"
		"       " PROGRAM " EAL-ARGUMENT... -- [OPTION]...\n"
		"       " PROGRAM " --config FILE [OPTION]...\n"
		"Provides RDMA to the programs of this machine that rocade-run(1) starts: "
		"between\neach other, or over a DPDK port.\n\n",
	.notes = "  --help, --version\n" NO_SECCOMP,
	.rows = rows,
	.count = ROWS,
	.column = 24,
	.stored = option_stored,
	.why = impair_why};

void
settings_init(struct conf *s)
{
	memset(s, 0, sizeof(*s));
	s->daemon.size = sizeof(s->daemon);
	s->daemon.client_pairs = 64;
	s->daemon.impair.seed = 1;
	s->log_level = ROCADE_LOG_WARNING;
}

void
settings_fini(struct conf *s)
{
	while (s->eal_count != 0)
		free(s->eal[--s->eal_count]);
}

/* Finds the row that an error of the library names: "addresses: ..." is the row of
 * daemon.addresses. */
static const struct option_row *
row_of_error(const char *sentence, const char **rest)
{
	const char *colon = strstr(sentence, ": ");

	for (unsigned i = 0; colon != NULL && i < ROWS; i++) {
		const char *dot =
			rows[i].member != NULL ? strrchr(rows[i].member, '.') : NULL;

		if (dot != NULL && strlen(dot + 1) == (size_t)(colon - sentence) &&
			strncmp(dot + 1, sentence, strlen(dot + 1)) == 0) {
			*rest = colon + 2;
			return &rows[i];
		}
	}
	return NULL;
}

int
settings_check(const struct conf *s, char err[ERR_MAX])
{
	const struct option_row *row;
	const char *why = NULL;

	if (rocade_daemon_check(&s->daemon) == 0)
		return 0;
	row = row_of_error(rocade_error(), &why);
	if (row == NULL)
		return error_set(err, "%s", rocade_error());
	if (s->line[row - rows] == 0)
		return error_set(err, "--%s: %s", row->name, why);
	return error_set(
		err, "%s:%u: %s: %s", s->file, s->line[row - rows], row->name, why);
}

static bool
row_equal(const struct option_row *row, const struct conf *a, const struct conf *b)
{
	const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
	const char *s, *t;

	if (row->kind != OPTION_TEXT)
		return memcmp(x, y, row->size) == 0;
	s = *(const char *const *)x;
	t = *(const char *const *)y;
	return s == NULL || t == NULL ? s == t : strcmp(s, t) == 0;
}

void
settings_need_restart(
	const struct conf *now, const struct conf *wanted, char *text, size_t size)
{
	size_t len = 0;
	bool eal = now->eal_count == wanted->eal_count;

	text[0] = '\0';
	for (unsigned i = 0; i < ROWS; i++) {
		if ((rows[i].use & SECTION) == NO_SECTION || (rows[i].use & LIVE) != 0 ||
			row_equal(&rows[i], now, wanted) || len >= size)
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s",
			len != 0 ? ", " : "", rows[i].name);
	}
	for (unsigned i = 0; eal && i < now->eal_count; i++)
		eal = strcmp(now->eal[i], wanted->eal[i]) == 0;
	if (!eal && len < size)
		snprintf(text + len, size - len, "%s[eal]", len != 0 ? ", " : "");
}
