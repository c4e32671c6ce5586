/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "line_trace.h"

#define LINE_BITS 6
#define LINES (1u << 17) /* of the hash table */
#define RMWS 256
#define PAGE 4096

struct line {
	uintptr_t number; /* address >> LINE_BITS; 0: a free entry */
	const void *writer[TRACE_PARTS], *reader[TRACE_PARTS]; /* of the first access */
	unsigned holders; /* parts that have a copy, as bits: one after a write */
	bool written;
};

static struct line lines[LINES];
static struct trace_rmw rmws[RMWS];
static unsigned used, rmw_count;
static unsigned long moves;
static int part = -1;

#define PC __builtin_return_address(0)

static void
trace_must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "line_trace: failed: %s\n", what);
	exit(1);
}

void
trace_begin(unsigned number)
{
	part = (int)number;
}

void
trace_end(void)
{
	part = -1;
}

static struct line *
line_get(uintptr_t number)
{
	uint32_t at = (uint32_t)((number * UINT64_C(0x9E3779B97F4A7C15)) >> 40) % LINES;

	for (;; at = (at + 1) % LINES) {
		struct line *line = &lines[at];

		if (line->number == number)
			return line;
		if (line->number != 0)
			continue;
		trace_must(++used < LINES / 2, "room for lines");
		line->number = number;
		return line;
	}
}

/* An access of this part: returns whether the line comes from the other one, or is taken from it. A
 * line that both only read moves no more: both have a copy. */
static bool
moves_now(struct line *line, int write)
{
	unsigned own = 1u << part, others = line->holders & ~own;
	bool move =
		others != 0 && (write || (line->written && (line->holders & own) == 0));

	line->holders = write ? own : line->holders | own;
	line->written |= write;
	return move;
}

static void
access_note(const volatile void *at, size_t size, int write, const void *pc)
{
	uintptr_t first = (uintptr_t)at >> LINE_BITS;
	uintptr_t last = ((uintptr_t)at + size - 1) >> LINE_BITS;

	if (part < 0 || size == 0)
		return;
	for (uintptr_t number = first; number <= last; number++) {
		struct line *line = line_get(number);
		const void **by = write ? &line->writer[part] : &line->reader[part];

		if (*by == NULL)
			*by = pc;
		moves += moves_now(line, write);
	}
}

static void
rmw_note(const volatile void *at, size_t size, const void *pc)
{
	unsigned i = 0;

	access_note(at, size, 1, pc);
	if (part < 0)
		return;
	while (i < rmw_count && rmws[i].pc != pc)
		i++;
	if (i == rmw_count) {
		trace_must(rmw_count < RMWS, "room for read-modify-writes");
		rmws[rmw_count++].pc = pc;
	}
	rmws[i].count++;
}

/* ---- What the compiler calls ---- */

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, unsigned long size);
void __tsan_write_range(void *at, unsigned long size);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void
__tsan_init(void)
{
}

void
__tsan_func_entry(void *pc)
{
	(void)pc;
}

void
__tsan_func_exit(void)
{
}

void
__tsan_read_range(void *at, unsigned long size)
{
	access_note(at, size, 0, PC);
}

void
__tsan_write_range(void *at, unsigned long size)
{
	access_note(at, size, 1, PC);
}

void
__tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void
__tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define ACCESS(name, size, write)                                                        \
	void __tsan_##name(void *at);                                                    \
	void __tsan_##name(void *at)                                                     \
	{                                                                                \
		access_note(at, size, write, PC);                                        \
	}
#define ACCESSES(size)                                                                   \
	ACCESS(read##size, size, 0)                                                      \
	ACCESS(write##size, size, 1)                                                     \
	ACCESS(unaligned_read##size, size, 0)                                            \
	ACCESS(unaligned_write##size, size, 1)                                           \
	ACCESS(volatile_read##size, size, 0)                                             \
	ACCESS(volatile_write##size, size, 1)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define RMW(bits, name, expression)                                                      \
	uint##bits##_t __tsan_atomic##bits##_##name(                                     \
		volatile uint##bits##_t *at, uint##bits##_t value, int order);           \
	uint##bits##_t __tsan_atomic##bits##_##name(                                     \
		volatile uint##bits##_t *at, uint##bits##_t value, int order)            \
	{                                                                                \
		(void)order;                                                             \
		rmw_note(at, sizeof(*at), PC);                                           \
		return expression(at, value, __ATOMIC_SEQ_CST);                          \
	}
#define COMPARE(bits, name)                                                              \
	int __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                    \
		uint##bits##_t *expected, uint##bits##_t value, int order, int failed);  \
	int __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,                    \
		uint##bits##_t *expected, uint##bits##_t value, int order, int failed)   \
	{                                                                                \
		(void)order;                                                             \
		(void)failed;                                                            \
		rmw_note(at, sizeof(*at), PC);                                           \
		return __atomic_compare_exchange_n(                                      \
			at, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
	}
/* clang's */
#define COMPARE_VALUE(bits)                                                              \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                       \
		volatile uint##bits##_t *at, uint##bits##_t expected,                    \
		uint##bits##_t value, int order, int failed);                            \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                       \
		volatile uint##bits##_t *at, uint##bits##_t expected,                    \
		uint##bits##_t value, int order, int failed)                             \
	{                                                                                \
		(void)order;                                                             \
		(void)failed;                                                            \
		rmw_note(at, sizeof(*at), PC);                                           \
		__atomic_compare_exchange_n(                                             \
			at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
		return expected;                                                         \
	}
#define ATOMICS(bits)                                                                    \
	uint##bits##_t __tsan_atomic##bits##_load(                                       \
		const volatile uint##bits##_t *at, int order);                           \
	uint##bits##_t __tsan_atomic##bits##_load(                                       \
		const volatile uint##bits##_t *at, int order)                            \
	{                                                                                \
		(void)order;                                                             \
		access_note(at, sizeof(*at), 0, PC);                                     \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                            \
	}                                                                                \
	void __tsan_atomic##bits##_store(                                                \
		volatile uint##bits##_t *at, uint##bits##_t value, int order);           \
	void __tsan_atomic##bits##_store(                                                \
		volatile uint##bits##_t *at, uint##bits##_t value, int order)            \
	{                                                                                \
		(void)order;                                                             \
		access_note(at, sizeof(*at), 1, PC);                                     \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                           \
	}                                                                                \
	RMW(bits, exchange, __atomic_exchange_n)                                         \
	RMW(bits, fetch_add, __atomic_fetch_add)                                         \
	RMW(bits, fetch_sub, __atomic_fetch_sub)                                         \
	RMW(bits, fetch_and, __atomic_fetch_and)                                         \
	RMW(bits, fetch_or, __atomic_fetch_or)                                           \
	RMW(bits, fetch_xor, __atomic_fetch_xor)                                         \
	COMPARE(bits, compare_exchange_strong)                                           \
	COMPARE(bits, compare_exchange_weak)                                             \
	COMPARE_VALUE(bits)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

/* ---- Copies: the linker replaces calls of memcpy() by __wrap_memcpy() ---- */

#define WRAPPED(type, name)                                                              \
	void *__real_##name(void *to, type from, size_t size);                           \
	void *__wrap_##name(void *to, type from, size_t size);                           \
	void *__tsan_##name(void *to, type from, size_t size); /* clang */               \
	static void *name##_trace(void *to, type from, size_t size, const void *pc)      \
	{                                                                                \
		access_note(to, size, 1, pc);                                            \
		return __real_##name(to, from, size);                                    \
	}                                                                                \
	void *__wrap_##name(void *to, type from, size_t size)                            \
	{                                                                                \
		return name##_trace(to, from, size, PC);                                 \
	}                                                                                \
	void *__tsan_##name(void *to, type from, size_t size)                            \
	{                                                                                \
		return name##_trace(to, from, size, PC);                                 \
	}
WRAPPED(const void *, memcpy)
WRAPPED(const void *, memmove)
WRAPPED(int, memset)

/* ---- The result ---- */

/* The name of the function at pc, by binutils. */
static void
function_name(const void *pc, char name[64])
{
	char command[256];
	FILE *pipe;

	/* The program is linked at fixed addresses. pc is behind the call. */
	snprintf(command, sizeof(command), "addr2line -f -e /proc/%d/exe %p", getpid(),
		(const void *)((const char *)pc - 1));
	pipe = popen(command, "r");
	trace_must(pipe != NULL && fgets(name, 64, pipe) != NULL, "addr2line");
	name[strcspn(name, "\n")] = '\0';
	pclose(pipe);
}

static const char *
function_of(const void *pc)
{
	static struct {
		const void *pc;
		char name[64];
	} known[1024];
	unsigned i = 0;

	for (; known[i].pc != NULL; i++) {
		if (known[i].pc == pc)
			return known[i].name;
	}
	trace_must(i + 1 < sizeof(known) / sizeof(known[0]), "room for functions");
	known[i].pc = pc;
	function_name(pc, known[i].name);
	return known[i].name;
}

unsigned
trace_rmws(struct trace_rmw *rows, unsigned n)
{
	for (unsigned i = 0; i < rmw_count && i < n; i++) {
		rows[i] = rmws[i];
		strcpy(rows[i].function, function_of(rows[i].pc));
	}
	return rmw_count;
}

static void
row_add(struct trace_shared *rows, unsigned *count, unsigned n, const void *a,
	const void *b)
{
	const char *first = function_of(a), *second = function_of(b);
	unsigned i = 0;

	while (i < *count && (strcmp(rows[i].function[0], first) != 0 ||
				     strcmp(rows[i].function[1], second) != 0))
		i++;
	trace_must(i < n, "room for rows");
	if (i == *count) {
		*count += 1;
		strcpy(rows[i].function[0], first);
		strcpy(rows[i].function[1], second);
		rows[i].lines = 0;
	}
	rows[i].lines++;
}

unsigned
trace_shared_lines(struct trace_shared *rows, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LINES; i++) {
		if (lines[i].writer[0] != NULL && lines[i].writer[1] != NULL)
			row_add(rows, &count, n, lines[i].writer[0], lines[i].writer[1]);
	}
	return count;
}

unsigned
trace_read_lines(struct trace_shared *rows, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LINES; i++) {
		for (unsigned k = 0; k < TRACE_PARTS; k++) {
			if (lines[i].writer[k] != NULL && lines[i].writer[!k] == NULL &&
				lines[i].reader[!k] != NULL)
				row_add(rows, &count, n, lines[i].writer[k],
					lines[i].reader[!k]);
		}
	}
	return count;
}

unsigned long
trace_moves(void)
{
	return moves;
}

unsigned long
trace_lines(unsigned number)
{
	unsigned long count = 0;

	for (unsigned i = 0; i < LINES; i++)
		count += lines[i].writer[number] != NULL;
	return count;
}
