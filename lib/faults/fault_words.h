/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser's view of a line: words, numbers and times. Internal to lib/faults. */
#ifndef ROCADE_FAULTS_FAULT_WORDS_H
#define ROCADE_FAULTS_FAULT_WORDS_H

#include "faults/faults.h"

#define END_VALID "the end of the line, or # COMMENT"
#define NUMBER_VALID "a number from 1 to 1000000000000000000"

struct parser {
	struct fault_script *script;
	const char *at, *end; /* of what is not read yet; the end of the line */
	const char *begin;    /* of the line */
	uint32_t line;
	unsigned room; /* for rules */
	char *why;
	int err;
};

/* A word, or a sign, which is a word of one character. len 0: the line has no more. */
struct word {
	const char *at;
	size_t len;
};

bool fault_word_is(struct word w, const char *text);
/* Keeps an error about a word. Returns false, for `return fault_refuse(...)`. */
bool fault_refuse(struct parser *p, int err, struct word w, const char *valid);
struct word fault_word_next(struct parser *p);
/* Reads a word that has to be this one. */
bool fault_expect(struct parser *p, const char *text);
/* Reads the digits that w begins with. Returns their count; 0: there are none, or the number is not valid. */
size_t fault_digits_read(struct word w, uint64_t *number);
bool fault_count_read(struct parser *p, uint64_t *number);
/* Whether w, the next word, is none. valid: what else is valid there. */
bool fault_line_end_read(struct parser *p, struct word w, const char *valid);

/* TIME: whole milliseconds or seconds. least: 0 or 1. *w: the word that it is. */
bool fault_time_read(struct parser *p, unsigned least, uint32_t *ms, struct word *w);

/* fault_parse_link.c: "down" ["for" TIME] | "up", behind "link", to the end of the line. */
bool fault_link_read(struct parser *p, struct fault_rule *r);
/* TIME ["to" TIME] ":" "link" "down" ["for" TIME "each" TIME], behind "from". */
bool fault_span_read(struct parser *p, struct fault_rule *r);

#endif
