/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "sweep.h"
#include "testpmd_report.h"

static struct sweep_row
row_of(struct host *host)
{
	struct result result;

	result_of(host, &result);
	return (struct sweep_row){.asked = host->rate.asked,
		.rate = result.rate,
		.p50 = (double)result.p50_ns / 1e3,
		.p99 = (double)result.p99_ns / 1e3,
		.p999 = (double)result.p999_ns / 1e3,
		.p9999 = (double)result.p9999_ns / 1e3,
		.max = (double)result.max_ns / 1e3,
		.behind = port_behind(host)};
}

static int
csv_write(const char *path, const struct sweep_row *rows, unsigned n)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return -1;
	fprintf(file,
		"asked_per_s,rate_per_s,p50_us,p99_us,p999_us,p9999_us,max_us,behind\n");
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%.0f,%.0f,%.3f,%.3f,%.3f,%.3f,%.3f,%" PRIu64 "\n",
			rows[i].asked, rows[i].rate, rows[i].p50, rows[i].p99,
			rows[i].p999, rows[i].p9999, rows[i].max, rows[i].behind);
	return fclose(file);
}

static int
sweep_json_write(
	const char *path, const struct sweep_row *rows, unsigned n, const char *title)
{
	json_t *out = json_object(), *list = json_array();
	int rc;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
			json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "asked_per_s",
				rows[i].asked, "rate_per_s", rows[i].rate, "p50_us",
				rows[i].p50, "p99_us", rows[i].p99, "p999_us",
				rows[i].p999, "p9999_us", rows[i].p9999, "max_us",
				rows[i].max, "behind", (json_int_t)rows[i].behind));
	json_object_set_new(out, "title", json_string(title));
	json_object_set_new(out, "steps", list);
	rc = json_dump_file(out, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(out);
	return rc;
}

/* Writes the file of each kind. */
static void
files_write(struct run *run, const struct sweep_row *rows, unsigned n)
{
	static const char *const kinds[] = SWEEP_KINDS;
	char title[OPTIONS_TEXT];

	(void)exchange_options(&run->hosts[0], title);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[DUMP_PATH_MAX + 8];
		int rc;

		snprintf(path, sizeof(path), "%s.%s", run->conf.sweep_file, kinds[i]);
		rc = i == 0   ? csv_write(path, rows, n)
		     : i == 1 ? sweep_json_write(path, rows, n, title)
			      : sweep_svg_write(path, rows, n, title);
		if (rc == 0)
			continue;
		fprintf(stderr, "cannot write '%s': %s\n", path, strerror(errno));
		run->failed = true;
	}
}

static struct host *
sender_of(struct run *run)
{
	for (unsigned i = 0; i < run->n_hosts; i++) {
		if (run->hosts[i].ops == &send_ops)
			return &run->hosts[i];
	}
	return NULL;
}

void
sweep_run(struct run *run)
{
	struct sweep_row rows[SWEEP_MAX];
	struct host *sender = sender_of(run);
	unsigned n = 0;

	for (unsigned i = 0; i < run->conf.n_sweep && !run->quit && !run->failed; i++) {
		run->conf.rate = run->conf.sweep[i];
		if (run_start(run) != 0)
			break;
		run_loop(run, UINT64_MAX);
		if (!run->failed && !run->quit)
			rows[n++] = row_of(sender);
	}
	if (n != 0)
		files_write(run, rows, n);
}
