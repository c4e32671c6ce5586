/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on demand: a script has rules, and each rule says which calls are refused, and with which error
 * (rocade-faults(1)). fault_read.c and fault_journal.c read and write files, fault_text.c prints. Nothing here reads a
 * clock. */
#ifndef ROCADE_FAULTS_FAULTS_H
#define ROCADE_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rocade/faults.h>

#define FAULT_RULES_MAX 10000
#define FAULT_TEXT_MAX (16 * 1024 * 1024) /* bytes of a script */
#define FAULT_NAME_MAX 255                /* bytes of a program's name */
#define FAULT_WHY_MAX ROCADE_FAULTS_WHY   /* bytes of the sentence about an error */
#define FAULT_NUMBER_MAX UINT64_C(1000000000000000000)
#define FAULT_MILLION 1000000 /* a share of 100 % */
/* Begins the comment of a journal for a process that has made a call that counts. Its two names are behind it. */
#define FAULT_JOURNAL_PROCESS "# rocade-faults process "

enum fault_call {
#define CALL(name, functions, unit) FAULT_##name,
#include "faults/calls.def"
	FAULT_CALLS
};

enum fault_when {
	FAULT_NTH,      /* call `number` */
	FAULT_EACH_NTH, /* each call whose number is a multiple of `number` */
	FAULT_SHARE     /* `number` of a million calls, as the seed draws them */
};

struct fault_rule {
	uint8_t call; /* enum fault_call */
	uint8_t when; /* enum fault_when */
	int err;
	uint32_t line; /* of the script, from 1 */
	uint64_t number;
	char *program; /* whose processes it concerns. NULL: of all */
};

struct fault_script {
	struct fault_rule *rules;
	unsigned count;
};

/* Reads rules from a text. Returns 0, or a positive errno: EINVAL, or E2BIG for more than FAULT_RULES_MAX rules, or
 * ENOMEM. why gets line, column and what is valid then, and the script is empty. */
int fault_script_parse(
	struct fault_script *s, const char *text, size_t len, char why[FAULT_WHY_MAX]);
void fault_script_free(struct fault_script *s);

/* The same from a file, whose path begins the sentence in why. */
int fault_script_read(struct fault_script *s, const char *path, char why[FAULT_WHY_MAX]);

/* Returns the whole text of a file, with a NUL behind it, or NULL with errno. */
char *fault_text_read(const char *path, size_t *len);

/* The rules of a process, by call, and its counts. */
struct fault_plan {
	const struct fault_script *script;
	uint64_t seed;
	uint32_t *
		order; /* indices of rules, those of call c from start[c] to start[c + 1] */
	uint32_t start[FAULT_CALLS + 1];
	uint64_t count[FAULT_CALLS]; /* of what was counted so far */
	uint64_t *applied;           /* for each rule of the script: how often */
};

/* A call to refuse. rule NULL: none. */
struct fault_hit {
	const struct fault_rule *rule;
	uint64_t number; /* of the call */
};

/* A byte of a program's name as names are compared and written: one that a script cannot have is a question mark. */
char fault_name_byte(char c);

/* Takes the rules of the script for all programs, and for one with any of these names. The script has to last.
 * Returns 0 or ENOMEM. */
int fault_plan_init(struct fault_plan *p, const struct fault_script *s, uint64_t seed,
	const char *const *names, unsigned name_count);
void fault_plan_free(struct fault_plan *p);
/* For a forked child, which has made no calls. */
void fault_plan_restart(struct fault_plan *p);

/* Whether any rule of the process is of this call. */
bool fault_plan_concerns(const struct fault_plan *p, enum fault_call call);
/* Counts a call, and returns which rule refuses it: the first of the script that does. Any thread. */
struct fault_hit fault_plan_next(struct fault_plan *p, enum fault_call call);
/* The rule of a hit was applied. Any thread. */
void fault_plan_applied(struct fault_plan *p, const struct fault_hit *hit);

/* Whether the rule with this index in its script matches the call with this number. The same arguments give the
 * same answer. */
bool fault_rule_matches(
	const struct fault_rule *r, uint32_t index, uint64_t seed, uint64_t number);

/* fault_names.c: names of scripts. FAULT_CALLS, and 0, if there is none of this name. */
enum fault_call fault_call_named(const char *name, size_t len);
int fault_error_named(enum fault_call call, const char *name, size_t len);
const char *fault_call_name(enum fault_call call);
const char *fault_call_functions(enum fault_call call);
bool fault_counts_requests(enum fault_call call);
const char *fault_error_name(int err);
/* The section of the man page that allows the call to fail. */
const char *fault_permission(enum fault_call call, int err);
/* Writes the names that are valid, with commas between them. */
void fault_calls_list(char *out, size_t size);
void fault_errors_list(enum fault_call call, char *out, size_t size);

/* fault_text.c: prints a sentence for each rule. */
void fault_script_explain(const struct fault_script *s, FILE *to);

#endif
