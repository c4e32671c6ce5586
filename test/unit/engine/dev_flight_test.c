/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that prints the records of QPs that enter ERR. */
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "base/base_log.h"
#include "case.h"
#include "engine/dev_flight.h"

static unsigned records; /* printed */

static void
heading_count(enum log_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (strncmp(line, "QP 0x", 5) == 0)
		__atomic_fetch_add(&records, 1, __ATOMIC_RELAXED);
}

static unsigned
records_printed(void)
{
	return __atomic_load_n(&records, __ATOMIC_RELAXED);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static void
qps_fail(const struct qp *qp, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		flight_error(qp);
}

/* docs/troubleshooting.md: at most 20 QPs a second. At the end all that wait are printed at once. */
TEST(records_are_printed_one_by_one)
{
	struct qp_shared shared = {.flight_on = true};
	struct qp qp = {.shared = &shared, .qpn = 0x11, .sq.mem = &alloc_plain};
	struct flight_printer *printer;
	uint64_t began;

	log_set_sink(heading_count, NULL);
	assert_int_equal(flight_create(&qp), 0);
	assert_int_equal(flight_printer_start(&printer), 0);
	shared.flight = flight_printer_log(printer);
	began = now_ns();
	qps_fail(&qp, FLIGHT_COPIES);
	await(records_printed() == FLIGHT_COPIES);
	assert_true(now_ns() - began >= (FLIGHT_COPIES - 1) * 50 * NS_PER_MS);
	qps_fail(&qp, FLIGHT_COPIES);
	flight_printer_stop(printer);
	assert_int_equal(records_printed(), 2 * FLIGHT_COPIES);
	flight_destroy(&qp);
	log_set_sink(NULL, NULL);
}
