/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Copy and CRC in one pass. ISA-L has no such function for this polynomial. Separate
 * passes take nearly twice as long: the loads and stores of the copy fit between the
 * multiplications of the CRC.
 *
 * The CRC is folded (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009): 128 bits are multiplied by x^distance modulo the
 * polynomial, and added (XOR) to the 128 bits that follow at that distance. The remainder
 * stays the same. The headers before the payload are folded onto it, too: one call of
 * ISA-L for each end of the payload would take a third as long as 4 KiB. */
#include <string.h>

#include "base/common.h"
#include "wire/icrc_copy.h"

uint32_t icrc_copy_min = UINT32_MAX;

#ifdef __x86_64__
#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul")))

/* x^(distance + 32) and x^(distance - 32) modulo the polynomial, bits reversed and
 * shifted left by one, for the two halves of 128 bits. by_N: for a distance of N bits. */
static const uint64_t by_2048[2] = {0x11542778a, 0x1322d1430};
static const uint64_t by_512[2] = {0x154442bd4, 0x1c6e41596};
static const uint64_t by_128[2] = {0x1751997d0, 0x0ccaa009e};
/* x^64 modulo the polynomial in the same form; the polynomial; and x^64 divided by it, for
 * Barrett's reduction. */
static const uint64_t by_64[2] = {0x163cd6124, 0};
static const uint64_t barrett[2] = {0x1db710641, 0x1f7011641};

static WIDE __m512i
factors_broadcast(const uint64_t by[2])
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)by));
}

static WIDE __m512i
fold_wide(__m512i x, __m512i by, __m512i onto)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
		_mm512_clmulepi64_epi128(x, by, 0x11), onto, 0x96); /* a ^ b ^ c */
}

static WIDE __m128i
fold_narrow(__m128i x, __m128i by, __m128i onto)
{
	return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(x, by, 0x00),
		_mm_clmulepi64_si128(x, by, 0x11), onto, 0x96);
}

static WIDE __m512i
copy_wide(uint8_t *dst, const uint8_t *src)
{
	__m512i bytes = _mm512_loadu_si512(src);

	_mm512_storeu_si512(dst, bytes);
	return bytes;
}

/* Folds the four lanes of x, in their order, into one. */
static WIDE __m128i
lanes_fold(__m512i x)
{
	__m128i by = _mm_loadu_si128((const __m128i *)by_128);
	__m128i one = _mm512_castsi512_si128(x);

	one = fold_narrow(one, by, _mm512_extracti32x4_epi32(x, 1));
	one = fold_narrow(one, by, _mm512_extracti32x4_epi32(x, 2));
	return fold_narrow(one, by, _mm512_extracti32x4_epi32(x, 3));
}

/* Returns the CRC of 128 bits that the CRC of all bytes before them was added to. */
static WIDE uint32_t
crc_reduce(__m128i x)
{
	const __m128i low = _mm_setr_epi32(-1, 0, -1, 0);
	__m128i by = _mm_loadu_si128((const __m128i *)by_128), quotient;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by, 0x10));
	by = _mm_loadu_si128((const __m128i *)by_64);
	x = _mm_xor_si128(_mm_srli_si128(x, 4),
		_mm_clmulepi64_si128(_mm_and_si128(x, low), by, 0x00));
	by = _mm_loadu_si128((const __m128i *)barrett);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low), by, 0x10);
	x = _mm_xor_si128(
		x, _mm_clmulepi64_si128(_mm_and_si128(quotient, low), by, 0x00));
	return ~(uint32_t)_mm_extract_epi32(x, 1);
}

/* Returns what the bytes before a payload add to its first 128 bits. ISA-L's value is
 * complemented. */
static WIDE __m128i
before_fold(struct icrc_sum sum, size_t len)
{
	__m128i by = _mm_loadu_si128((const __m128i *)by_128), x;

	if (unlikely(len % sizeof(x) != 0)) {
		sum.crc = icrc_update(sum.crc, sum.from, len);
		len = 0;
	}
	x = _mm_cvtsi32_si128((int)~sum.crc);
	for (size_t at = 0; at < len; at += sizeof(x))
		x = fold_narrow(
			_mm_xor_si128(
				x, _mm_loadu_si128((const __m128i *)(sum.from + at))),
			by, _mm_setzero_si128());
	return x;
}

static bool wide; /* the CPU has the instructions */

static WIDE uint32_t
copy_folding(struct icrc_sum before, size_t before_len, uint8_t *dst, const uint8_t *src,
	size_t len)
{
	__m128i first = before_fold(before, before_len);
	__m512i far = factors_broadcast(by_2048), near = factors_broadcast(by_512),
		sum[4];
	uint32_t crc;
	size_t at;

	static_assert(ICRC_COPY_MIN == sizeof(sum), "the first loop fills sum[]");
	assert(len >= ICRC_COPY_MIN);
	for (unsigned i = 0; i < 4; i++)
		sum[i] = copy_wide(dst + 64 * i, src + 64 * i);
	sum[0] = _mm512_xor_si512(sum[0], _mm512_zextsi128_si512(first));
	for (at = ICRC_COPY_MIN; len - at >= ICRC_COPY_MIN; at += ICRC_COPY_MIN) {
		for (unsigned i = 0; i < 4; i++)
			sum[i] = fold_wide(sum[i], far,
				copy_wide(dst + at + 64 * i, src + at + 64 * i));
	}
	for (unsigned i = 1; i < 4; i++)
		sum[i] = fold_wide(sum[i - 1], near, sum[i]);
	for (; len - at >= 64; at += 64)
		sum[3] = fold_wide(sum[3], near, copy_wide(dst + at, src + at));
	crc = crc_reduce(lanes_fold(sum[3]));
	if (len == at)
		return crc;
	memcpy(dst + at, src + at, len - at);
	return icrc_update(crc, dst + at, len - at);
}

static __attribute__((constructor)) void
cpu_detect(void)
{
	__builtin_cpu_init();
	wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
	if (wide)
		icrc_copy_min = ICRC_COPY_MIN;
}

#else

static const bool wide;

static uint32_t
copy_folding(struct icrc_sum before, size_t before_len, uint8_t *dst, const uint8_t *src,
	size_t len)
{
	(void)before, (void)before_len, (void)dst, (void)src, (void)len;
	assert(false); /* never called: wide is false */
	return 0;
}

#endif

uint32_t
icrc_copy(struct icrc_sum before, size_t before_len, uint8_t *dst, const uint8_t *src,
	size_t len)
{
	uint32_t crc;

	if (likely(wide))
		return copy_folding(before, before_len, dst, src, len);
	crc = icrc_update(before.crc, before.from, before_len);
	memcpy(dst, src, len);
	return icrc_update(crc, dst, len);
}

struct icrc_sum
icrc_sum_copy(struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len)
{
	return (struct icrc_sum){.from = dst + len,
		.crc = icrc_copy(sum, (size_t)(dst - sum.from), dst, src, len)};
}
