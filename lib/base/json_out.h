/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON text (RFC 8259), written to a stream piece by piece. Each value has a key, which is
 * NULL in an array and for the outermost value; keys are literals that need no escaping.
 * Write errors show in ferror() or fclose() of the stream.
 */
#ifndef ROCADE_BASE_JSON_OUT_H
#define ROCADE_BASE_JSON_OUT_H

#include <stdio.h>

#include "base/common.h"

struct json_out {
	FILE *to;
	unsigned depth;  /* of the open objects and arrays, at most 31 */
	uint32_t arrays; /* bit n: what is open at depth n is an array */
	uint32_t filled; /* bit n: it contains something */
};

/* An object or array: what follows is in it, until json_out_end(). */
void json_out_object(struct json_out *j, const char *key);
void json_out_array(struct json_out *j, const char *key);
void json_out_end(struct json_out *j);

/* At most INT64_MAX: parsers fail on larger numbers. */
void json_out_uint(struct json_out *j, const char *key, uint64_t value);
void json_out_bool(struct json_out *j, const char *key, bool value);
/* Any bytes. Those that are not UTF-8 come out as U+FFFD. */
void json_out_text(struct json_out *j, const char *key, const char *text);
/* The caller then writes a JSON value to the stream. */
void json_out_raw(struct json_out *j, const char *key);

#endif
