/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of a libibverbs and a librdmacm that stand in for the real ones: STUB() of each symbol, which
 * stand_in_test.py writes, passes the call on to the real library, unless that would be wrong. Then it names
 * the function and aborts.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum stand_in_rule {
	NEVER, /* Rocade's own function is called in its place, and all objects are Rocade's */
	NOWHERE,    /* not passed on: of an object that the program cannot have */
	NO_OBJECT,  /* with no object of Rocade */
	ANY_OBJECT, /* calls verbs, or is asked for the devices of the host */
};

#define ARGUMENTS 6 /* none of the functions that a program calls has more */
#define OBJECTS 64

static const void *objects[OBJECTS];

/* The program names an object of Rocade. */
__attribute__((visibility("default"))) void
stand_in_object(const void *object)
{
	for (size_t i = 0; i < OBJECTS; i++) {
		if (objects[i] == NULL || objects[i] == object) {
			objects[i] = object;
			return;
		}
	}
	abort();
}

static void
stand_in_enter(const char *name, enum stand_in_rule rule, const long *arguments)
{
	int wrong = rule == NEVER;

	for (size_t i = 0; rule == NO_OBJECT && i < ARGUMENTS; i++)
		for (size_t j = 0; j < OBJECTS && objects[j] != NULL; j++)
			wrong |= (const void *)arguments[i] == objects[j];
	if (!wrong)
		return;
	fprintf(stderr, "the real %s is called\n", name);
	abort();
}

typedef long stand_in_function(long, long, long, long, long, long);

/* NULL: the installed library lacks it. */
static stand_in_function *
stand_in_real(const char *name, const char *node)
{
	static void *(*lookup)(void *handle, const char *name, const char *node);
	static void *library;

	if (library == NULL)
		library = dlopen(REAL_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	/* not Rocade's dlvsym(), which would find Rocade's function */
	if (lookup == NULL)
		*(void **)&lookup = dlsym(RTLD_NEXT, "dlvsym");
	if (library == NULL || lookup == NULL)
		abort();
	return (stand_in_function *)lookup(library, name, node);
}

#define STUB(number, rule, name, symbol, node)                                           \
	__asm__(".symver stub_" #number "," symbol);                                     \
	long stub_##number(long a, long b, long c, long d, long e, long f);              \
	__attribute__((used, visibility("default"))) long stub_##number(                 \
		long a, long b, long c, long d, long e, long f)                          \
	{                                                                                \
		static stand_in_function *real;                                          \
                                                                                         \
		stand_in_enter(name, rule, (long[ARGUMENTS]){a, b, c, d, e, f});         \
		if (real == NULL && rule != NOWHERE)                                     \
			real = stand_in_real(name, node);                                \
		if (real != NULL)                                                        \
			return real(a, b, c, d, e, f);                                   \
		errno = ENOSYS;                                                          \
		return 0;                                                                \
	}
