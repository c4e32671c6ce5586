/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "testpmd_help.h"
#include "testpmd_options.h"

#define TEXT_COLUMN 28
#define WIDTH 90

/* A test compares these texts with the man page and docs/testpmd.md. */
static const char *const exit_texts[] = {
	[EXIT_OK] = "all messages arrived and were verified",
	[EXIT_RUN] = "the run failed: no peer, connection lost, or wrong data",
	[EXIT_USAGE] = "invalid option or value",
	[EXIT_ENVIRONMENT] = "cannot start EAL or open a port",
};

/* Prints text in lines of at most WIDTH columns, all but the first indented. at: the
 * current column. */
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
testpmd_help_print(FILE *out)
{
	fprintf(out,
		"Usage: " PROGRAM " [EAL options] -- [options]\n"
		"       " PROGRAM " -- --loop [options]\n"
		"\n"
		"Sends RoCEv2 messages between two DPDK ports and verifies every byte. "
		"Start it on two\n"
		"hosts, --mode sink on one and --mode send on the other; each needs "
		"its own address (--addr)\n"
		"and the other's (--peer). EAL options are those of DPDK (" PROGRAM
		" --no-pci\n--vdev=... -- OPTIONS).\n");
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
