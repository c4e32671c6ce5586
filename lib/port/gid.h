/* SPDX-License-Identifier: BSD-3-Clause */
/* GIDs: parse, format, classify. IPv4 a.b.c.d is ::ffff:a.b.c.d. Called from everywhere. */
#ifndef ROCADE_PORT_GID_H
#define ROCADE_PORT_GID_H

#include "base/common.h"

static inline bool
gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return __builtin_memcmp(gid, mapped, sizeof(mapped)) == 0;
}

bool gid_is_zero(const uint8_t gid[16]);
/* Returns whether packets can go from an address to another one: not between two IP versions. A
 * group of IPv6 is an exception, because programs send to any group with any GID index. Then the
 * source address is IPv4-mapped. */
bool gid_reaches(const uint8_t sgid[16], const uint8_t dgid[16]);
bool gid_is_multicast(const uint8_t gid[16]);  /* 224.0.0.0/4 or ff00::/8 */
bool gid_is_link_local(const uint8_t gid[16]); /* fe80::/10 */
/* RFC 1122 3.2.1.3, RFC 4291 2.7. */
bool gid_is_unicast(const uint8_t gid[16]);
/* Returns whether gid can be the address of a single host. */
bool gid_is_host(const uint8_t gid[16]);
/* len: of the prefix; with an IPv4 prefix 0..32. */
bool gid_in_prefix(const uint8_t gid[16], const uint8_t prefix[16], unsigned len);

/* Returns the first index of gid among count GIDs; -1: it is not among them. */
int gid_find(const uint8_t (*gids)[16], int count, const uint8_t gid[16]);

void gid_from_ipv4(const void *ipv4, uint8_t gid[16]);
void gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6]);
/* ff02::1:ffXX:XXXX (RFC 4291 2.7.1). */
void gid_solicited_node(const uint8_t gid[16], uint8_t group[16]);
/* fe80::/64 with the EUI-64 of the MAC (RFC 4291, appendix A). */
void gid_link_local(const uint8_t mac[6], uint8_t gid[16]);

/* Converts between text and GID, IPv4 dotted or IPv6. gid_parse() returns 0 or -EINVAL.
 * It accepts a prefix ("192.0.2.1/24"); the default is 32 or 128. With prefix_len NULL a
 * prefix is -EINVAL. gid_format() needs a buf of at least 46 bytes. */
int gid_parse(const char *text, uint8_t gid[16], uint8_t *prefix_len);
const char *gid_format(const uint8_t gid[16], char *buf, size_t size);

#endif
