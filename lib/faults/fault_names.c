/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of calls, errors, statuses, events and effects, from calls.def and docs/faults.def. */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

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

/* Words of the kinds in docs/faults.def. */
#define SENDS (FAULT_ON_SEND | FAULT_ON_SEND_INV)
#define WRITES (FAULT_ON_WRITE | FAULT_ON_WRITE_IMM)
#define DATA (SENDS | WRITES | FAULT_ON_READ | FAULT_ON_ATOMIC | FAULT_ON_ATOMIC_WRITE)
#define PACKETS (DATA | FAULT_ON_FLUSH)
#define LOCAL (FAULT_ON_LOCAL_INV | FAULT_ON_BIND)
#define TAKING (SENDS | FAULT_ON_WRITE_IMM)
#define KEYED (PACKETS & ~FAULT_ON_SEND)
#define RECEIVE FAULT_ON_RECEIVE
#define BYTES FAULT_ON_BYTES
#define MEMORY FAULT_ON_MEMORY
#define CONTENT (BYTES | MEMORY)
#define RC FAULT_OF_RC
#define UC FAULT_OF_UC
#define UD FAULT_OF_UD
#define SRQ FAULT_OF_SRQ
#define QP (RC | UC | UD)
#define ANY FAULT_OF_ANY

static const struct value {
	uint8_t counted, action;
	const char *name;
	int value;
	unsigned kinds;
	const char *permission;
} values[] = {
#define FAULT_request FAULT_REQUESTS
#define FAULT_receive FAULT_RECEIVES
#define COMPLETION(counted, name, status, kinds, types, rule, test)                      \
	{FAULT_##counted, FAULT_FAIL, name, status, (kinds) | (types), rule},
#define PACKET(name, effect, rule, test)                                                 \
	{FAULT_PACKETS, FAULT_PACKET, name, effect, 0, rule},
#define EVENT(counted, name, event, kinds, types, rule, test)                            \
	{FAULT_##counted, FAULT_EVENT, name, event, (kinds) | (types), rule},
#define CM(counted, action, name, value, rule, test)                                     \
	{FAULT_##counted, FAULT_##action, name, value, PACKETS | LOCAL | RC | UC, rule},
#define FAULT_time FAULT_TIMES
#define LINK(counted, name, state, rule, test)                                           \
	{FAULT_##counted, FAULT_LINK, name, state, PACKETS | LOCAL | RECEIVE | ANY, rule},
#include <faults.def>
};

/* Of rules of requests and calls. */
static const struct {
	const char *word;
	enum fault_action action;
	const char *value; /* the word for its values */
} actions[] = {
	{"fail", FAULT_FAIL, "STATUS"},
	{"event", FAULT_EVENT, "EVENT"},
	{"reject", FAULT_REJECT, "REASON"},
	{"lose", FAULT_LOSE, "MESSAGE"},
	{"link", FAULT_LINK, "STATE"},
};

#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

#define VALUES (sizeof(values) / sizeof(values[0]))
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

static bool
value_is_of(const struct value *v, const struct fault_rule *r)
{
	return v->counted == r->call && v->action == r->action;
}

static bool
has_values(const struct fault_rule *r)
{
	size_t i = 0;

	while (i < VALUES && !value_is_of(&values[i], r))
		i++;
	return i < VALUES;
}

static void
actions_add(unsigned counted, char *out, size_t size)
{
	char action[32];

	for (size_t i = 0; i < ACTIONS; i++) {
		struct fault_rule r = {
			.call = (uint8_t)counted, .action = (uint8_t)actions[i].action};

		if (!has_values(&r))
			continue;
		snprintf(action, sizeof(action), "%s %s", actions[i].word,
			actions[i].value);
		names_add(out, size, action);
	}
}

void
fault_errors_list(enum fault_call call, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < ERRORS; i++) {
		if (errors[i].call == call)
			names_add(out, size, errors[i].name);
	}
	actions_add(call, out, size);
}

void
fault_actions_list(unsigned counted, char *out, size_t size)
{
	out[0] = '\0';
	actions_add(counted, out, size);
}

bool
fault_action_named(struct fault_rule *r, const char *word, size_t len)
{
	struct fault_rule named = {.call = r->call};

	for (size_t i = 0; i < ACTIONS; i++) {
		named.action = (uint8_t)actions[i].action;
		if (is_named(actions[i].word, word, len) && has_values(&named)) {
			r->action = named.action;
			return true;
		}
	}
	return false;
}

const char *
fault_action_name(const struct fault_rule *r)
{
	size_t i = 0;

	while (i + 1 < ACTIONS && actions[i].action != r->action)
		i++;
	return actions[i].word;
}

/* Returns the row of a rule, or NULL. */
static const struct value *
value_row(const struct fault_rule *r)
{
	for (size_t i = 0; i < VALUES; i++) {
		if (value_is_of(&values[i], r) && values[i].value == r->err)
			return &values[i];
	}
	return NULL;
}

bool
fault_value_named(struct fault_rule *r, const char *name, size_t len)
{
	for (size_t i = 0; i < VALUES; i++) {
		if (value_is_of(&values[i], r) && is_named(values[i].name, name, len)) {
			r->err = values[i].value;
			return true;
		}
	}
	return false;
}

const char *
fault_value_name(const struct fault_rule *r)
{
	const struct value *v = value_row(r);

	return v != NULL ? v->name : "?";
}

const char *
fault_value_permission(const struct fault_rule *r)
{
	const struct value *v = value_row(r);

	return v != NULL ? v->permission : "?";
}

bool
fault_value_fits(const struct fault_rule *r, unsigned kind)
{
	const struct value *v = value_row(r);
	unsigned on = kind & ~(FAULT_OF_ANY | CONTENT), of = v != NULL ? v->kinds : 0;

	return (of & on) != 0 && (of & kind & FAULT_OF_ANY) != 0 &&
	       (of & CONTENT & ~kind) == 0;
}

void
fault_values_list(const struct fault_rule *r, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; i < VALUES; i++) {
		if (value_is_of(&values[i], r))
			names_add(out, size, values[i].name);
	}
}

bool
fault_row(unsigned index, struct fault_rule *r)
{
	if (index < ERRORS) {
		r->call = (uint8_t)errors[index].call;
		r->action = FAULT_REFUSE;
		r->err = errors[index].err;
		return true;
	}
	index -= (unsigned)ERRORS;
	if (index >= VALUES)
		return false;
	r->call = values[index].counted;
	r->action = values[index].action;
	r->err = values[index].value;
	return true;
}
