/* SPDX-License-Identifier: BSD-3-Clause */
/* Records which cache lines the code of the program writes and reads, and which of its
 * instructions are atomic read-modify-writes. The program is compiled with -fsanitize=thread,
 * which calls a function before each access to memory that others may see; line_trace.c has these
 * functions in place of ThreadSanitizer's. Not seen are accesses by system libraries other than
 * memcpy(), memmove() and memset(). */
#ifndef ROCADE_TEST_LINE_TRACE_H
#define ROCADE_TEST_LINE_TRACE_H

#define TRACE_PARTS 2

/* Records from now on, as part 0 or 1; one thread at a time. */
void trace_begin(unsigned part);
void trace_end(void);

/* Atomic read-modify-writes of both parts at one place. */
struct trace_rmw {
	char function[64];
	unsigned long count;
	const void *pc;
};
/* Lines that both parts wrote, by the functions of their first stores. */
struct trace_shared {
	char function[TRACE_PARTS][64];
	unsigned long lines;
};

/* Fill up to n rows, and return how many there are. */
unsigned trace_rmws(struct trace_rmw *rows, unsigned n);
unsigned trace_shared_lines(struct trace_shared *rows, unsigned n);
/* Lines that one part wrote and the other read, by the functions of the first accesses: the writer's
 * first. */
unsigned trace_read_lines(struct trace_shared *rows, unsigned n);
/* How often a line moved: a part accessed it after the other one had written it, or wrote what the other
 * one had read. */
unsigned long trace_moves(void);
/* Lines that a part wrote. */
unsigned long trace_lines(unsigned part);

#endif
