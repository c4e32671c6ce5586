/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "perf_help.h"
#include "perf_options.h"

#define TEXT_COLUMN 26
#define WIDTH 90

/* A test compares these texts with the man page. */
static const char *const exit_texts[] = {
	[EXIT_OK] = "measured",
	[EXIT_RUN] = "the run failed: the peer disconnected, or a request failed",
	[EXIT_USAGE] = "invalid option or value",
	[EXIT_ENVIRONMENT] = "cannot start EAL or open a port",
};

/* Prints text in lines of at most WIDTH columns, all but the first indented. */
static void
option_text_print(FILE *out, const char *text, int indent)
{
	int at = indent;

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
option_print(FILE *out, const struct option_row *row)
{
	int at;

	if (row->kind == OPTION_HEADING) {
		fputc('\n', out);
		option_text_print(out, row->text, 0);
		return;
	}
	at = fprintf(out, "  --%s", row->name);
	if (row->arg != NULL)
		at += fprintf(out, " %s", row->arg);
	fprintf(out, "%*s", TEXT_COLUMN - at, "");
	option_text_print(out, row->text, TEXT_COLUMN);
}

void
perf_help_print(FILE *out)
{
	fprintf(out,
		"Usage: " PROGRAM " [EAL options] -- --server --socket PATH [options]\n"
		"       " PROGRAM " [EAL options] -- --socket PATH [options]\n"
		"\n"
		"Measures rates and latencies of RDMA between two processes of one "
		"host, each with a DPDK\n"
		"port. The client, without --server, determines what is measured and "
		"prints the result.\n"
		"Payload is not checked; rocade-testpmd does that.\n");
	for (unsigned i = 0; i < n_option_rows; i++)
		option_print(out, &option_rows[i]);
	fprintf(out, "\nExit codes:\n");
	for (unsigned i = 0; i < sizeof(exit_texts) / sizeof(exit_texts[0]); i++)
		fprintf(out, "  %u  %s\n", i, exit_texts[i]);
}
