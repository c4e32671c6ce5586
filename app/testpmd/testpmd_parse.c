/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <common/impair_option.h>

#include "testpmd_parse.h"

#define ITEM_MAX 80
#define PREFIX_DIGITS 3

static char why[160]; /* list_why() */

const char *
list_why(void)
{
	return why;
}

void
list_why_set(const char *text)
{
	snprintf(why, sizeof(why), "it %s", text);
}

void
list_why_clear(void)
{
	why[0] = '\0';
}

/* Parses item n, of len bytes. Returns what is wrong with it, or NULL. */
static const char *
item_parse(const char *text, size_t len, void *list, unsigned n, parse_item parse)
{
	char item[ITEM_MAX];

	if (len == 0)
		return "is empty";
	if (len >= sizeof(item))
		return "is too long";
	memcpy(item, text, len);
	item[len] = '\0';
	return parse(item, list, n);
}

unsigned
parse_list(const char *text, void *list, unsigned max, parse_item parse)
{
	bool alone = strchr(text, ',') == NULL;

	list_why_clear();
	for (unsigned n = 0;; n++) {
		size_t len = strcspn(text, ",");
		const char *wrong = n < max ? item_parse(text, len, list, n, parse)
					    : "is one too many";

		if (wrong != NULL && !alone)
			snprintf(why, sizeof(why), "entry %u, '%.*s', %s", n + 1,
				(int)(len < ITEM_MAX ? len : ITEM_MAX), text, wrong);
		if (wrong != NULL)
			return 0;
		if (text[len] == '\0')
			return n + 1;
		text += len + 1;
	}
}

static const char *
item_lcore(const char *item, void *list, unsigned n)
{
	uint16_t *lcores = list;
	uint64_t lcore;

	if (!parse_number(item, 0, UINT16_MAX, &lcore))
		return "is no number of an lcore";
	for (unsigned i = 0; i < n; i++) {
		if (lcores[i] == lcore)
			return "comes twice";
	}
	lcores[n] = (uint16_t)lcore;
	return NULL;
}

unsigned
parse_lcore_list(const char *text, uint16_t *lcores, unsigned max)
{
	return parse_list(text, lcores, max, item_lcore);
}

static const char *
item_size(const char *item, void *list, unsigned n)
{
	return parse_size(item, MSG_SIZE_MAX, &((uint64_t *)list)[n])
		       ? NULL
		       : "is no number of bytes up to 2g";
}

unsigned
parse_size_list(const char *text, uint64_t *sizes, unsigned max)
{
	return parse_list(text, sizes, max, item_size);
}

bool
parse_rate(const char *text, struct rate_conf *rate)
{
	double unit = 1, value;
	uint64_t whole;
	char *end;

	if (!isdigit((unsigned char)text[0]) || strncmp(text, "0x", 2) == 0)
		return false;
	value = strtod(text, &end);
	if (*end == 'k' || *end == 'm' || *end == 'g')
		unit = *end == 'k' ? 1e3 : *end == 'm' ? 1e6 : 1e9;
	end += unit != 1;
	value *= unit;
	if (value >= 1e15 || (end[0] != '\0' && strcmp(end, "bps") != 0))
		return false;
	whole = (uint64_t)(value + 0.5);
	/* 1.1g is none in binary: a relative error of a few 2^-53. */
	if ((value > (double)whole ? value - (double)whole : (double)whole - value) >
		value * 1e-12)
		return false;
	rate->per_s = whole;
	rate->bits = end[0] != '\0';
	return true;
}

static const char *
item_rate(const char *item, void *list, unsigned n)
{
	struct rate_conf *rates = list;

	return parse_rate(item, &rates[n]) && rates[n].per_s != 0 ? NULL
								  : "is no rate above 0";
}

unsigned
parse_rate_list(const char *text, struct rate_conf *rates, unsigned max)
{
	return parse_list(text, rates, max, item_rate);
}

static bool
impair_parsed(const char *wrong)
{
	list_why_clear();
	if (wrong != NULL)
		list_why_set(wrong);
	return wrong == NULL;
}

bool
parse_impair(const char *text, struct rocade_impair *impair)
{
	return impair_parsed(impair_parse(text, impair));
}

bool
parse_impair_words(const char *text, struct rocade_impair *impair)
{
	return impair_parsed(impair_words_parse(text, impair));
}

static const char *const mode_names[] = {"send", "sink", "pingpong", "both", NULL};

bool
parse_mode(const char *text, enum mode_kind *mode)
{
	uint64_t index;

	if (!parse_word(text, mode_names, &index))
		return false;
	*mode = (enum mode_kind)index;
	return true;
}

const char *
mode_name(enum mode_kind mode)
{
	return mode_names[mode];
}

static bool
v4_is_host(const struct in_addr *in)
{
	uint32_t a = ntohl(in->s_addr);

	return a >> 24 != 0 && a >> 24 != 127 && a >> 28 < 0xe;
}

bool
parse_host_address(const char *text, size_t len, bool *is_v6)
{
	char copy[INET6_ADDRSTRLEN];
	struct in_addr v4;
	struct in6_addr v6;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, &v4) == 1) {
		*is_v6 = false;
		return v4_is_host(&v4);
	}
	if (inet_pton(AF_INET6, copy, &v6) != 1)
		return false;
	*is_v6 = true;
	return !IN6_IS_ADDR_MULTICAST(&v6) && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
	       !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_V4MAPPED(&v6);
}

static const char *
item_address(const char *item, void *list, unsigned n)
{
	size_t slash = strcspn(item, "/");
	uint64_t bits;
	bool is_v6;

	(void)list;
	(void)n;
	if (!parse_host_address(item, slash, &is_v6))
		return "has no address that a host can have";
	return item[slash] == '/' && strlen(item + slash + 1) <= PREFIX_DIGITS &&
			       parse_number(item + slash + 1, 1, is_v6 ? 128 : 32, &bits)
		       ? NULL
		       : "has no length of a prefix behind /";
}

bool
parse_address_list(const char *text)
{
	return parse_list(text, NULL, UINT_MAX, item_address) != 0;
}
