/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_byteorder.h>

#include "wire/icrc.h"

/*
 * Masked headers are copied to the stack in blocks of 16 bytes, so that the CRC's vector
 * loads find each block in one store. The copy starts 8 bytes before the IP header: there
 * the mask makes the Ethernet header into the ones that stand for the LRH, and the CRC
 * needs no seed.
 */
typedef uint8_t block __attribute__((vector_size(16)));

#define LEAD 8        /* bytes before the IP header */
#define BLOCKS_IPV4 3 /* to the end of the BTH */
#define BLOCKS_IPV6 4 /* to 4 bytes before the end of the BTH */
#define TAIL_COPY 96  /* up to this a copy costs less than a second CRC call */

/* clang-format off */
#define X 0xFF
static const block mask_ipv4[BLOCKS_IPV4] = {
	{X, X, X, X, X, X, X, X, 0, X, 0, 0, 0, 0, 0, 0}, /* LRH; TOS */
	{X, 0, X, X, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, /* TTL; checksum */
	{0, 0, X, X, 0, 0, 0, 0, X, 0, 0, 0, 0, 0, 0, 0}, /* UDP checksum; BTH byte 4 */
};
static const block mask_ipv6[BLOCKS_IPV6] = {
	{X, X, X, X, X, X, X, X, 0x0F, X, X, X, 0, 0, 0, X}, /* LRH; class, label; hops */
	{0}, {0},
	{0, 0, 0, 0, 0, 0, X, X, 0, 0, 0, 0, X, 0, 0, 0}, /* UDP checksum; BTH byte 4 */
};
#undef X
/* clang-format on */

static inline void
block_mask(uint8_t *to, const uint8_t *from, const block *mask, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		block b;

		__builtin_memcpy(&b, from + 16 * i, sizeof(b));
		b |= mask[i];
		__builtin_memcpy(to + 16 * i, &b, sizeof(b));
	}
}

/* len is a multiple of 4. */
static inline void
words_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t i = 0;

	for (; i + 16 <= len; i += 16)
		__builtin_memcpy(to + i, from + i, 16);
	for (; i < len; i += 4)
		__builtin_memcpy(to + i, from + i, 4);
}

uint32_t
icrc_path(const uint8_t *ip, unsigned ip_version)
{
	uint8_t copy[LEAD + 40 + 4] __attribute__((aligned(16)));

	if (ip_version == 4) {
		block_mask(copy, ip - LEAD, mask_ipv4, 2);
		return icrc_update(0, copy, LEAD + 20 + 4);
	}
	block_mask(copy, ip - LEAD, mask_ipv6, 3);
	__builtin_memcpy(copy + LEAD + 40, ip + 40, 4);
	return icrc_update(0, copy, LEAD + 40 + 4);
}

uint32_t
icrc_transport(uint32_t crc, const uint8_t *udp_len, uint32_t ext_len)
{
	static const block mask = {0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF};
	uint8_t copy[16 + EXT_LEN_MAX] __attribute__((aligned(16)));

	block_mask(copy, udp_len, &mask, 1);
	words_copy(copy + 16, udp_len + 16, ext_len);
	return icrc_update(crc, copy, 16 + ext_len);
}

bool
icrc_check(const struct pkt_view *view)
{
	uint8_t copy[16 * BLOCKS_IPV6 + TAIL_COPY] __attribute__((aligned(16)));
	const uint8_t *end = view->payload + view->payload_len + view->pad;
	const uint8_t *from = view->ip - LEAD;
	uint32_t head, tail, crc, wire;

	if (view->ip_version == 4) {
		head = 16 * BLOCKS_IPV4;
		block_mask(copy, from, mask_ipv4, BLOCKS_IPV4);
	} else {
		head = 16 * BLOCKS_IPV6;
		block_mask(copy, from, mask_ipv6, BLOCKS_IPV6);
	}
	from += head;
	tail = (uint32_t)(end - from);
	if (tail <= TAIL_COPY) {
		words_copy(copy + head, from, tail);
		crc = icrc_update(0, copy, head + tail);
	} else {
		crc = icrc_update(icrc_update(0, copy, head), from, tail);
	}
	__builtin_memcpy(&wire, end, sizeof(wire));
	return rte_le_to_cpu_32(wire) == crc;
}
