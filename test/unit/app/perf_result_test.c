/* SPDX-License-Identifier: BSD-3-Clause */
/* What rocade-perf prints. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include <perf/result.h>

#include "case.h"

static struct result result;

uint64_t
rte_get_tsc_hz(void)
{
	return 1000000000;
}

const char *
perf_mode_name(uint64_t mode)
{
	return mode == MODE_PINGPONG ? "pingpong" : "send";
}

bool
mode_has_latency(uint64_t mode)
{
	return mode == MODE_PINGPONG;
}

/* Prints to a file. Returns what result_print() does, and its output. */
static int
print(const struct conf *conf, char err[ERR_MAX], char *out, size_t size)
{
	FILE *file = tmpfile();
	int stdout_fd = dup(1), rc;

	fflush(stdout);
	dup2(fileno(file), 1);
	rc = result_print(conf, &result, err);
	fflush(stdout);
	dup2(stdout_fd, 1);
	close(stdout_fd);
	rewind(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
	return rc;
}

TEST(a_measurement_without_messages_has_failed)
{
	static const enum mode modes[] = {MODE_SEND, MODE_PINGPONG};
	char err[ERR_MAX], out[256];

	for (unsigned i = 0; i < 2; i++) {
		struct conf conf = {
			.plan = {.mode = modes[i], .size = 64, .qps = 1, .seconds = 3}};

		hist_clear(&result.hist);
		result.tally = (struct tally){.messages = 0, .seconds = 3};
		assert_int_equal(print(&conf, err, out, sizeof(out)), -1);
		assert_string_equal(out, "");
		assert_string_equal(err,
			"no message completed in the --seconds 3 of the measurement");
	}
}

TEST(a_line_has_the_numbers)
{
	struct conf conf = {.plan = {.mode = MODE_SEND, .size = 125, .qps = 2}};
	char err[ERR_MAX], out[256];

	result.tally = (struct tally){.messages = 4000000, .seconds = 2};
	assert_int_equal(print(&conf, err, out, sizeof(out)), 0);
	assert_string_equal(out, "send, 125 bytes, 2 QPs: 2.000 Mmsg/s, 2.000 Gb/s\n");
	conf.plan.mode = MODE_PINGPONG;
	hist_clear(&result.hist);
	hist_add(&result.hist, 700);
	result.tally.messages = 1;
	assert_int_equal(print(&conf, err, out, sizeof(out)), 0);
	assert_string_equal(out,
		"pingpong, 125 bytes, 2 QPs: min 700, p50 700, p99 700, p99.9 700 ns\n");
}
