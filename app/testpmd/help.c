/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "help.h"
#include "options.h"

#define TEXT_COLUMN 28
#define WIDTH 90

/* The table stands word for word in the man page and in docs/testpmd.md; a test compares.
 */
static const char *const exit_texts[] = {
	[EXIT_OK] = "every message arrived and was right",
	[EXIT_RUN] =
		"the run failed: the peer never answered or went away, or data was wrong",
	[EXIT_USAGE] = "an option or its value cannot be",
	[EXIT_ENVIRONMENT] = "EAL does not start, or a port cannot be opened",
};

/* Words of text in lines of at most WIDTH, all but the first indented; at: the column
 * now. */
static void
print_wrapped(FILE *out, const char *text, int indent, int at)
{
	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (at > indent && at + 1 + len > WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void
print_row(FILE *out, const struct option_row *row)
{
	if (row->name == NULL) {
		fputc('\n', out);
		print_wrapped(out, row->text, 0, 0);
		return;
	}
	int at = row->letter != 0 ? fprintf(out, "  -%c, --%s", row->letter, row->name)
				  : fprintf(out, "      --%s", row->name);
	if (row->arg != NULL)
		at += fprintf(out, " %s", row->arg);
	if (at >= TEXT_COLUMN - 1) {
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", TEXT_COLUMN - at, "");
	print_wrapped(out, row->text, TEXT_COLUMN, TEXT_COLUMN);
}

void
help_print(FILE *out)
{
	fprintf(out, "Usage: " PROGRAM " [EAL options] -- [options]\n"
		     "       " PROGRAM " -- --loop [options]\n"
		     "\n"
		     "Sends RoCEv2 messages between two DPDK ports and checks every "
		     "byte. Start it on two\n"
		     "hosts: --mode sink on the one, --mode send on the other; each "
		     "needs no more than the\n"
		     "other's address. EAL options are DPDK's (" PROGRAM
		     " --no-pci --vdev=...).\n");
	for (unsigned i = 0; i < n_option_rows; i++)
		print_row(out, &option_rows[i]);
	fprintf(out, "\nExit codes:\n");
	for (unsigned i = 0; i < sizeof(exit_texts) / sizeof(exit_texts[0]); i++)
		fprintf(out, "  %u  %s\n", i, exit_texts[i]);
	fprintf(out, "\nExample, on two hosts:\n"
		     "  " PROGRAM " -- --mode sink --addr 192.0.2.2/24 --peer 192.0.2.1\n"
		     "  " PROGRAM
		     " -- --mode send --addr 192.0.2.1/24 --peer 192.0.2.2 -q 8 -t 10\n");
}
