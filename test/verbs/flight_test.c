/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder of an open port: rocade_qp_events(), and what is printed by itself when a
 * QP enters ERR while threads run the engines. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define QPS 4

static void
line_append(const char *line, void *arg)
{
	strcat(strcat(arg, line), "\n");
}

static char text[64 * 1024];

static const char *
events(struct ibv_qp *qp)
{
	text[0] = '\0';
	assert_int_equal(rocade_qp_events(qp, line_append, text), 0);
	return text;
}

static unsigned
occurrences(const char *in, const char *what)
{
	unsigned n = 0;

	for (; (in = strstr(in, what)) != NULL; in++)
		n++;
	return n;
}

/* Each QP sends without a receive at the peer, until it enters ERR. */
static void
qps_fail(struct verbs_pair *pair)
{
	struct ibv_wc wc[QPS];

	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(pair_send(&pair->a, i, i, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(pair, pair->a.send_cq, wc, QPS);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(wc[i].status, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* Runs fn with standard error in a file. Returns what was written. */
static char *
errors_of(void (*fn)(void))
{
	static char got[64 * 1024];
	int saved = dup(STDERR_FILENO), file = memfd_create("errors", 0);
	ssize_t len;

	assert_true(saved >= 0 && file >= 0);
	fflush(stderr);
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	fn();
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	len = pread(file, got, sizeof(got) - 1, 0);
	assert_true(len >= 0);
	got[len] = '\0';
	close(saved);
	close(file);
	return got;
}

static void
run_with_recorder(void)
{
	struct verbs_pair_conf conf = {.qps = QPS,
		.engines = 2,
		.srq_wr = 4,
		.rnr_retry = 1,
		.flight_recorder = true};
	struct verbs_pair pair;

	pair_open(&pair, &conf);
	pair_threads_start(&pair);
	qps_fail(&pair);
	assert_non_null(strstr(events(pair.a.qp[0]), "peer answered RNR for PSN"));
	assert_non_null(strstr(text, ", try 1 of 1\n"));
	assert_non_null(strstr(text, "RTS to ERR\n"));
	assert_non_null(strstr(events(pair.b.qp[0]), "no receive is posted for PSN"));
	pair_threads_stop(&pair);
	pair_close(&pair);
}

TEST(failed_qps_are_printed)
{
	const char *printed = errors_of(run_with_recorder);

	assert_int_equal(occurrences(printed, "rocade: warning: QP 0x"), QPS);
	assert_int_equal(occurrences(printed, "us: RTS to ERR\n"), QPS);
	assert_int_equal(
		occurrences(printed, "RNR_RETRIES: RNR NAKs, RNR retries spent\n"), QPS);
}

static void
run_without_recorder(void)
{
	struct verbs_pair_conf conf = {.qps = QPS, .srq_wr = 4, .rnr_retry = 1};
	struct verbs_pair pair;

	pair_open(&pair, &conf);
	qps_fail(&pair);
	text[0] = '\0';
	assert_int_equal(rocade_qp_events(pair.a.qp[0], line_append, text), ENOTSUP);
	assert_string_equal(text, "");
	assert_non_null(strstr(rocade_error(), "flight_recorder"));
	pair_close(&pair);
}

TEST(without_recorder_nothing_is_printed)
{
	assert_string_equal(errors_of(run_without_recorder), "");
}

/* Programs that were not built for it have a variable. */
static void
run_with_variable(void)
{
	struct verbs_pair_conf conf = {0};
	struct verbs_pair pair;

	assert_int_equal(setenv("ROCADE_FLIGHT_RECORDER", "1", 1), 0);
	pair_open(&pair, &conf);
	assert_non_null(strstr(events(pair.a.qp[0]), "RTR to RTS\n"));
	pair_close(&pair);
	assert_int_equal(setenv("ROCADE_FLIGHT_RECORDER", "0", 1), 0);
	pair_open(&pair, &conf);
	assert_int_equal(rocade_qp_events(pair.a.qp[0], line_append, text), ENOTSUP);
	pair_close(&pair);
	assert_int_equal(unsetenv("ROCADE_FLIGHT_RECORDER"), 0);
}

TEST(the_environment_switches_it)
{
	assert_string_equal(errors_of(run_with_variable), "");
}
