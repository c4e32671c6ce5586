/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a correct client has waited. */
#ifndef ROCADE_TEST_E2E_LATENCY_H
#define ROCADE_TEST_E2E_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

/* Adds a process. Time for which its main thread waits for a core does not count. */
void waits_add(int pid);

struct moment {
	uint64_t ns;
	uint64_t waited_ns; /* for which those of waits_add() have waited for a core */
};
struct moment moment_now(void);

struct series {
	const char *name;
	uint32_t *us; /* without the time for which the threads waited for a core */
	uint64_t count, lost, longest_us; /* longest_us: with that time */
};

void series_init(struct series *s, const char *name);
void series_add(struct series *s, const struct moment *start);
/* Prints the series since the last call as a member of a JSON object. */
void series_print(struct series *s, bool first);

/* Waits for this time, or until a line comes on standard input, for which it prints and
 * empties the series. Returns false at the end of the input. */
bool rows_serve(struct series *s, unsigned count, int wait_us);

#endif
