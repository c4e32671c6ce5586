/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to values: every function returns true, or false and leaves *out alone. */
#ifndef TESTPMD_PARSE_H
#define TESTPMD_PARSE_H

#include <common/number.h>

#include "conf.h"

/* "64,1024,4096": at most max of them; returns how many, 0: wrong. */
unsigned parse_size_list(const char *text, uint64_t *sizes, unsigned max);
/* "1%", "0.25%" or "100ppm": parts of a million. */
bool parse_ppm(const char *text, uint64_t *ppm);
/* "loss=1%,dup=1%", "loss 1% dup 1%" or "off". Those not named become 0; seed stays. */
bool parse_impair(const char *text, struct impair_conf *impair);
bool parse_mode(const char *text, enum mode_kind *mode);
const char *mode_name(enum mode_kind mode);

/* An IPv4 or IPv6 address that a host can have: not multicast, broadcast, loopback or
 * unspecified. len: characters of text to look at. */
bool parse_host_address(const char *text, size_t len, bool *is_v6);
/* "192.0.2.1/24,2001:db8::1/64". */
bool parse_address_list(const char *text);

#endif
