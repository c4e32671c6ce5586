/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of calls and errors, from calls.def and docs/faults.def. */
#include <errno.h>
#include <string.h>

#include "faults/faults.h"

enum unit { UNIT_CALL, UNIT_REQUEST };

static const struct {
	const char *name, *functions;
	enum unit unit;
} calls[FAULT_CALLS] = {
#define CALL(name_, functions_, unit_) [FAULT_##name_] = {#name_, functions_, unit_},
#include "faults/calls.def"
};

static const struct {
	enum fault_call call;
	int err;
	const char *name, *permission;
} errors[] = {
#define FAULT(layer, call_, err_, rule, test) {FAULT_##call_, err_, #err_, rule},
#include <faults.def>
};

#define ERRORS (sizeof(errors) / sizeof(errors[0]))

static bool
is_named(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && memcmp(name, text, len) == 0;
}

enum fault_call
fault_call_named(const char *name, size_t len)
{
	unsigned call = 0;

	while (call < FAULT_CALLS && !is_named(calls[call].name, name, len))
		call++;
	return (enum fault_call)call;
}

int
fault_error_named(enum fault_call call, const char *name, size_t len)
{
	for (size_t i = 0; i < ERRORS; i++) {
		if (errors[i].call == call && is_named(errors[i].name, name, len))
			return errors[i].err;
	}
	return 0;
}

const char *
fault_call_name(enum fault_call call)
{
	return calls[call].name;
}

const char *
fault_call_functions(enum fault_call call)
{
	return calls[call].functions;
}

bool
fault_counts_requests(enum fault_call call)
{
	return calls[call].unit == UNIT_REQUEST;
}

const char *
fault_error_name(int err)
{
	for (size_t i = 0; i < ERRORS; i++) {
		if (errors[i].err == err)
			return errors[i].name;
	}
	return "?";
}

const char *
fault_permission(enum fault_call call, int err)
{
	for (size_t i = 0; i < ERRORS; i++) {
		if (errors[i].call == call && errors[i].err == err)
			return errors[i].permission;
	}
	return "?";
}

static void
names_add(char *out, size_t size, const char *name)
{
	size_t len = strlen(out);

	snprintf(out + len, size - len, "%s%s", len != 0 ? ", " : "", name);
}

void
fault_calls_list(char *out, size_t size)
{
	out[0] = '\0';
	for (unsigned i = 0; i < FAULT_CALLS; i++)
		names_add(out, size, calls[i].name);
}

void
fault_errors_list(enum fault_call call, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < ERRORS; i++) {
		if (errors[i].call == call)
			names_add(out, size, errors[i].name);
	}
}
