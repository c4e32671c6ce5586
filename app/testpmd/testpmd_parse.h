/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to values. Each function that returns bool returns true, or returns false and
 * leaves its result unchanged. */
#ifndef TESTPMD_PARSE_H
#define TESTPMD_PARSE_H

#include <common/number.h>

#include "testpmd_conf.h"

/* Parses entry n of a list into list[n]. Returns NULL, or what is wrong with it: "comes twice". */
typedef const char *(*parse_item)(const char *item, void *list, unsigned n);
/* Parses a list of entries with commas between them, none of them empty. Returns their number; 0 if one is
 * invalid, or there are more than max: list_why() then says which. */
unsigned parse_list(const char *text, void *list, unsigned max, parse_item parse);
/* Which entry of the list that was parsed last is wrong, and why: "entry 2, '', is empty". Empty if none is, or
 * if it is the only one. */
const char *list_why(void);
void list_why_clear(void);
/* For a value that is not a list, or of which the reason matters although it is the only entry. */
void list_why_set(const char *text);
/* Parses a list such as "1,2" of at most max numbers up to 65535, none of them twice. Returns how
 * many there are; 0 if invalid. */
unsigned parse_lcore_list(const char *text, uint16_t *lcores, unsigned max);
/* Parses a list such as "64,1024,4096" of at most max sizes. Returns their number; 0 if
 * invalid. */
unsigned parse_size_list(const char *text, uint64_t *sizes, unsigned max);
/* Parses "250k", or "10gbps". */
bool parse_rate(const char *text, struct rate_conf *rate);
/* Parses a list of at most max of them, none of which is 0. Returns their number; 0 if invalid. */
unsigned parse_rate_list(const char *text, struct rate_conf *rates, unsigned max);
/* As impair_parse() and impair_words_parse(), with the reason in list_why(). */
bool parse_impair(const char *text, struct rocade_impair *impair);
bool parse_impair_words(const char *text, struct rocade_impair *impair);
bool parse_mode(const char *text, enum mode_kind *mode);
const char *mode_name(enum mode_kind mode);

/* Checks an IPv4 or IPv6 address that a host can have: not multicast, broadcast,
 * loopback, unspecified or IPv4-mapped. len: length of the address in text. */
bool parse_host_address(const char *text, size_t len, bool *is_v6);
/* Checks a list such as "192.0.2.1/24,2001:db8::1/64". */
bool parse_address_list(const char *text);

#endif
