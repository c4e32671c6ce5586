/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains a line that is no command: rte_cmdline only tells that it is none. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "testpmd_options.h"

#define WORDS 5

struct line_words {
	char text[256];
	const char *word[WORDS]; /* "": there is none */
};

static void
words_split(struct line_words *out, const char *line)
{
	char *state, *word;

	snprintf(out->text, sizeof(out->text), "%s", line);
	word = strtok_r(out->text, " \t", &state);
	for (unsigned i = 0; i < WORDS; i++) {
		out->word[i] = word != NULL ? word : "";
		word = word != NULL ? strtok_r(NULL, " \t", &state) : NULL;
	}
}

/* Lists the options that `set` has: "addr, peer". */
static void
names_list(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < testpmd_options.count && len < size; i++) {
		const struct option_row *row = &testpmd_options.rows[i];

		if ((row->use & OPT_EFFECT) != OPT_START)
			len += (size_t)snprintf(text + len, size - len, "%s%s",
				len != 0 ? ", " : "", row->name);
	}
}

static void
explain_set(const char *name, bool has_value)
{
	const struct option_row *row = option_find(&testpmd_options, name);
	bool settable = row != NULL && (row->use & OPT_EFFECT) != OPT_START;
	char names[512];

	names_list(names, sizeof(names));
	if (settable && !has_value && row->valid != NULL)
		command_failed("set %s: missing value: expected %s", name, row->valid);
	else if (settable && !has_value)
		command_failed("set %s: missing value: expected %" PRIu64 " to %" PRIu64,
			name, row->min, row->max);
	else if (row != NULL && !settable)
		command_failed("set: cannot set '%s' after program start; expected %s",
			name, names);
	else
		command_failed(
			"set: unknown option '%s'; expected srq, impair, dump, port, %s",
			name, names);
}

bool
command_explain(const char *line)
{
	struct line_words words;
	bool port;

	words_split(&words, line);
	port = strcmp(words.word[1], "port") == 0;
	if (strcmp(words.word[0], "help") == 0) {
		command_failed(
			"help: unknown topic '%s'; expected control, display, config, "
			"ports or traffic",
			words.word[1]);
	} else if (strcmp(words.word[0], "show") == 0) {
		command_failed(
			"show: invalid '%s'; expected port, engine, qp, srq, cq, mr, "
			"neigh or peer, and stats, info or all behind it",
			line + strcspn(line, " \t") + (line[4] != '\0'));
	} else if (strcmp(words.word[0], "set") == 0 &&
		   strcmp(words.word[1], "srq") != 0 &&
		   strcmp(words.word[1], "impair") != 0) {
		explain_set(
			words.word[port ? 3 : 1], words.word[port ? 4 : 2][0] != '\0');
	} else {
		return false;
	}
	return true;
}
