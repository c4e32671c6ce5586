/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <rte_byteorder.h>

#include "wire/icrc.h"

/*
 * The fields that routers change are masked in blocks of 16 bytes, so that each vector
 * load of the CRC reads one store. The blocks start 8 bytes before the IP header: there
 * the mask turns the end of the Ethernet header into the ones that stand for the LRH, so
 * the CRC needs no seed.
 */
typedef uint8_t block __attribute__((vector_size(16)));

#define LEAD 8        /* bytes before the IP header */
#define BLOCKS_IPV4 3 /* to the end of the BTH */
#define BLOCKS_IPV6 4 /* to 4 bytes before the end of the BTH */
#define COPY_MAX (9 * 16)

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

static inline void
block_copy(uint8_t *to, const uint8_t *from, size_t at, size_t len)
{
	__builtin_memcpy(to + at, from + at, len);
}

/* Copies at most a block, from the offset at to len. */
static inline void
tail_copy(uint8_t *to, const uint8_t *from, size_t at, size_t len)
{
	size_t tail = len - at;

	if (tail & 16)
		block_copy(to, from, at, 16);
	if (tail & 8)
		block_copy(to, from, at, 8);
	if (tail & 4)
		block_copy(to, from, len - 4, 4);
}

/* Copies the bytes behind the first n blocks, which a packet's headers fill. len is a
 * multiple of 4, below COPY_MAX. A loop would cost more than the jump. */
static inline void
rest_copy(uint8_t *to, const uint8_t *from, unsigned n, size_t len)
{
	size_t last = (len - 1) / sizeof(block);

	switch (last) {
	case 8:
		block_copy(to, from, 7 * sizeof(block), sizeof(block));
		/* fall through */
	case 7:
		block_copy(to, from, 6 * sizeof(block), sizeof(block));
		/* fall through */
	case 6:
		block_copy(to, from, 5 * sizeof(block), sizeof(block));
		/* fall through */
	case 5:
		block_copy(to, from, 4 * sizeof(block), sizeof(block));
		/* fall through */
	case 4:
		if (n == 4 && last == 4) {
			tail_copy(to, from, 4 * sizeof(block), len);
			break;
		}
		if (n < 4)
			block_copy(to, from, 3 * sizeof(block), sizeof(block));
		/* The last 16 bytes, which may overlap the block before. */
		block_copy(to, from, len - sizeof(block), sizeof(block));
		break;
	case 3:
		tail_copy(to, from, 3 * sizeof(block), len);
		break;
	default: /* IPv4 with nothing behind the BTH */
		break;
	}
}

/* The CRC of len bytes at head, the first n blocks masked. The frame is only read: it may
 * be in memory that its reader cannot write, such as the daemon's for a client. The rest
 * of a short frame is copied behind the masked blocks, which costs less than a second
 * call. */
static inline uint32_t
masked_crc(const uint8_t *head, const block *mask, unsigned n, size_t len)
{
	uint8_t copy[COPY_MAX] __attribute__((aligned(16)));
	size_t at = n * sizeof(block);

	block_mask(copy, head, mask, n);
	if (len >= COPY_MAX)
		return icrc_update(icrc_update(0, copy, at), head + at, len - at);
	rest_copy(copy, head, n, len);
	return icrc_update(0, copy, len);
}

/* The CRC from the masked headers up to end, which lies behind the BTH. */
static inline uint32_t
head_crc(const struct pkt_view *view, const uint8_t *end)
{
	const uint8_t *head = view->ip - LEAD;
	size_t len = (size_t)(end - head);

	return likely(view->ip_version == 4)
		       ? masked_crc(head, mask_ipv4, BLOCKS_IPV4, len)
		       : masked_crc(head, mask_ipv6, BLOCKS_IPV6, len);
}

static inline const uint8_t *
headers_end(const struct pkt_view *view)
{
	return view->ext + view->op->ext_len;
}

static inline bool
is_icrc(const uint8_t *at, uint32_t crc)
{
	uint32_t wire;

	__builtin_memcpy(&wire, at, sizeof(wire));
	return rte_le_to_cpu_32(wire) == crc;
}

static bool __rte_noinline
icrc_check_apart(const struct pkt_view *view)
{
	uint32_t len = view->payload_len + view->pad;

	return is_icrc(view->payload + len,
		icrc_update(head_crc(view, headers_end(view)), view->payload, len));
}

bool
icrc_check(const struct pkt_view *view)
{
	const uint8_t *end = view->payload + view->payload_len + view->pad;

	if (unlikely(view->payload_apart))
		return icrc_check_apart(view);
	return is_icrc(end, head_crc(view, end));
}

bool
icrc_check_copy(const struct pkt_view *view, uint8_t *dst)
{
	uint8_t copy[sizeof(mask_ipv4)] __attribute__((aligned(16)));
	const uint8_t *head = view->ip - LEAD;
	struct icrc_sum before = {.from = copy, .crc = 0};
	size_t before_len = 0;
	uint32_t crc;

	assert(view->pad == 0);
	if (likely(view->ip_version == 4 && view->op->ext_len == 0)) {
		block_mask(copy, head, mask_ipv4, BLOCKS_IPV4);
		before_len = sizeof(copy);
	} else { /* the headers are not a multiple of 16 bytes */
		before.crc = head_crc(view, headers_end(view));
	}
	crc = icrc_copy(before, before_len, dst, view->payload, view->payload_len);
	return is_icrc(view->payload + view->payload_len, crc);
}
