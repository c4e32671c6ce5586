/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "port/gid.h"

bool
gid_is_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return memcmp(gid, zero, sizeof(zero)) == 0;
}

bool
gid_is_multicast(const uint8_t gid[16])
{
	if (gid_is_ipv4(gid))
		return (gid[12] & 0xf0) == 0xe0;
	return gid[0] == 0xff;
}

bool
gid_reaches(const uint8_t sgid[16], const uint8_t dgid[16])
{
	if (gid_is_zero(sgid) || gid_is_zero(dgid))
		return false;
	return gid_is_ipv4(sgid) == gid_is_ipv4(dgid) || dgid[0] == 0xff;
}

bool
gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool
gid_is_unicast(const uint8_t gid[16])
{
	if (gid_is_ipv4(gid))
		return gid[12] != 0 && gid[12] < 224;
	return gid[0] != 0xff && !gid_is_zero(gid);
}

bool
gid_is_host(const uint8_t gid[16])
{
	static const uint8_t loopback[16] = {[15] = 1};

	/* Not "this network", loopback, multicast, reserved or broadcast (RFC 6890). */
	return gid_is_unicast(gid) &&
	       (gid_is_ipv4(gid) ? gid[12] != 127
				 : memcmp(gid, loopback, sizeof(loopback)) != 0);
}

bool
gid_in_prefix(const uint8_t gid[16], const uint8_t prefix[16], unsigned len)
{
	unsigned bits = len;
	uint8_t rest;

	if (gid_is_ipv4(prefix))
		bits += 96;
	if (memcmp(gid, prefix, bits / 8) != 0)
		return false;
	if (bits % 8 == 0)
		return true;
	rest = (uint8_t)(0xff00 >> bits % 8);
	return ((gid[bits / 8] ^ prefix[bits / 8]) & rest) == 0;
}

int
gid_find(const uint8_t (*gids)[16], int count, const uint8_t gid[16])
{
	for (int i = 0; i < count; i++) {
		if (memcmp(gids[i], gid, 16) == 0)
			return i;
	}
	return -1;
}

void
gid_from_ipv4(const void *ipv4, uint8_t gid[16])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ipv4, 4);
}

void
gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid_is_ipv4(gid)) { /* RFC 1112 6.4 */
		static const uint8_t base[3] = {0x01, 0x00, 0x5e};

		memcpy(mac, base, 3);
		mac[3] = gid[13] & 0x7f;
		memcpy(mac + 4, gid + 14, 2);
		return;
	}
	memset(mac, 0x33, 2); /* RFC 2464 7 */
	memcpy(mac + 2, gid + 12, 4);
}

void
gid_solicited_node(const uint8_t gid[16], uint8_t group[16])
{
	static const uint8_t base[13] = {
		0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff};

	memcpy(group, base, sizeof(base));
	memcpy(group + 13, gid + 13, 3);
}

void
gid_link_local(const uint8_t mac[6], uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	memcpy(gid + 8, mac, 3);
	gid[8] ^= 0x02;
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

/* Parses a decimal number of up to three digits. Returns it, or -EINVAL for anything
 * else. */
static int
prefix_len_parse(const char *text)
{
	int value = 0;

	if (*text == '\0' || strlen(text) > 3)
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (*text - '0');
	}
	return value;
}

int
gid_parse(const char *text, uint8_t gid[16], uint8_t *prefix_len)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash;
	uint8_t ip[16];
	size_t len;
	int max = 128, prefix;

	if (text == NULL)
		return -EINVAL;
	slash = strchr(text, '/');
	len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	if (len >= sizeof(host) || (slash != NULL && prefix_len == NULL))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, ip) == 1) {
		uint8_t mapped[16];

		gid_from_ipv4(ip, mapped);
		memcpy(ip, mapped, sizeof(ip));
		max = 32;
	} else if (inet_pton(AF_INET6, host, ip) != 1) {
		return -EINVAL;
	}
	prefix = slash != NULL ? prefix_len_parse(slash + 1) : max;
	if (prefix < 0 || prefix > max)
		return -EINVAL;
	if (max == 128 && gid_is_ipv4(ip)) { /* written ::ffff:a.b.c.d/n */
		if (prefix < 96)
			return -EINVAL;
		prefix -= 96;
	}
	memcpy(gid, ip, sizeof(ip));
	if (prefix_len != NULL)
		*prefix_len = (uint8_t)prefix;
	return 0;
}

const char *
gid_format(const uint8_t gid[16], char *buf, size_t size)
{
	const char *text;

	if (gid_is_ipv4(gid))
		text = inet_ntop(AF_INET, gid + 12, buf, (socklen_t)size);
	else
		text = inet_ntop(AF_INET6, gid, buf, (socklen_t)size);
	if (text == NULL && size > 0)
		buf[0] = '\0';
	return buf;
}
