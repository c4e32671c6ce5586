/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include "fuzz.h"
#include "wire/hdr.h"
#include "wire/icrc.h"

#define UDP_LEN 8

static unsigned
be16_at(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static void
be16_put(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t
sum_of(uint32_t sum, const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
	return sum;
}

static unsigned
sum_end(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return ~sum & 0xFFFF;
}

static void
fix_udp(uint8_t *udp, size_t room)
{
	be16_put(udp + 2, ROCE_UDP_PORT);
	/* A multiple of 4, as a padded packet has; the rest is trailing bytes. */
	be16_put(udp + 4, UDP_LEN + (room - UDP_LEN) / 4 * 4);
}

static void
fix_icrc(uint8_t *ip, size_t ip_len, unsigned version)
{
	size_t hdr = version == 4 ? 20 : 40;
	uint8_t *udp = ip + hdr;
	size_t len = be16_at(udp + 4);
	uint8_t masked[4 + sizeof(struct bth)];
	uint32_t crc;

	if (len < UDP_LEN + sizeof(struct bth) + ICRC_LEN || hdr + len > ip_len)
		return;
	memcpy(masked, udp + 4, sizeof(masked));
	masked[2] = masked[3] = masked[8] = 0xFF; /* checksum; BTH byte 4 */
	crc = icrc_update(icrc_path(ip, version), masked, sizeof(masked));
	crc = icrc_update(crc, udp + UDP_LEN + sizeof(struct bth),
		len - UDP_LEN - sizeof(struct bth) - ICRC_LEN);
	for (unsigned i = 0; i < 4; i++)
		udp[len - ICRC_LEN + i] = (uint8_t)(crc >> 8 * i);
}

static void
fix_icmp6(uint8_t *ip, size_t len)
{
	uint8_t *msg = ip + 40;

	if (len < 44)
		return;
	be16_put(msg + 2, 0);
	be16_put(msg + 2,
		sum_end(sum_of(sum_of((uint32_t)(len - 40) + IPPROTO_ICMPV6, ip + 8, 32),
			msg, len - 40)));
}

static void
fix_ipv4(uint8_t *ip, size_t len, unsigned what)
{
	if (what & FIX_LENGTHS) {
		ip[0] = 0x45;
		be16_put(ip + 2, len);
		ip[6] &= 0x40;
		ip[7] = 0;
		if (ip[9] != IPPROTO_ICMP && len >= 20 + UDP_LEN) {
			ip[9] = IPPROTO_UDP;
			fix_udp(ip + 20, len - 20);
		}
	}
	if (what & FIX_CHECKSUMS) {
		be16_put(ip + 10, 0);
		be16_put(ip + 10, sum_end(sum_of(0, ip, 20)));
		if (ip[9] == IPPROTO_ICMP && len >= 24) {
			be16_put(ip + 22, 0);
			be16_put(ip + 22, sum_end(sum_of(0, ip + 20, len - 20)));
		}
	}
	if (what & FIX_ICRC && ip[9] == IPPROTO_UDP && len >= 20 + UDP_LEN)
		fix_icrc(ip, len, 4);
}

static void
fix_ipv6(uint8_t *ip, size_t len, unsigned what)
{
	if (what & FIX_LENGTHS) {
		ip[0] = (uint8_t)(0x60 | (ip[0] & 0xF));
		be16_put(ip + 4, len - 40);
		if (ip[6] != IPPROTO_ICMPV6 && len >= 40 + UDP_LEN) {
			ip[6] = IPPROTO_UDP;
			fix_udp(ip + 40, len - 40);
		}
	}
	if (what & FIX_CHECKSUMS && ip[6] == IPPROTO_ICMPV6)
		fix_icmp6(ip, len);
	if (what & FIX_ICRC && ip[6] == IPPROTO_UDP && len >= 40 + UDP_LEN)
		fix_icrc(ip, len, 6);
}

void
frame_fix(uint8_t *frame, size_t len, unsigned what)
{
	size_t off = 14;

	if (len >= 18 && be16_at(frame + 12) == 0x8100)
		off = 18;
	if (len >= off + 20 && be16_at(frame + off - 2) == 0x0800)
		fix_ipv4(frame + off, len - off, what);
	else if (len >= off + 40 && be16_at(frame + off - 2) == 0x86DD)
		fix_ipv6(frame + off, len - off, what);
}
