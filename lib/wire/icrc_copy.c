/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Copy and CRC in one pass. ISA-L has no such function for this polynomial. Separate
 * passes take nearly twice as long: the loads and stores of the copy fit between the
 * multiplications of the CRC.
 *
 * The CRC is folded (Gopal et al., "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009): 128 bits are multiplied by x^distance modulo the
 * polynomial, and added (XOR) to the 128 bits that follow at that distance. The remainder
 * stays the same. ISA-L computes the CRC of the last 16 bytes. */
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

static bool wide; /* the CPU has the instructions */

static WIDE uint32_t
copy_folding(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	__m512i far = factors_broadcast(by_2048), near = factors_broadcast(by_512),
		sum[4];
	uint8_t rest[16];
	size_t at;

	static_assert(ICRC_COPY_MIN == sizeof(sum), "the first loop fills sum[]");
	assert(len >= ICRC_COPY_MIN);
	for (unsigned i = 0; i < 4; i++)
		sum[i] = copy_wide(dst + 64 * i, src + 64 * i);
	/* Adds the CRC of what came before. ISA-L's value is complemented. */
	sum[0] = _mm512_xor_si512(
		sum[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	for (at = ICRC_COPY_MIN; len - at >= ICRC_COPY_MIN; at += ICRC_COPY_MIN) {
		for (unsigned i = 0; i < 4; i++)
			sum[i] = fold_wide(sum[i], far,
				copy_wide(dst + at + 64 * i, src + at + 64 * i));
	}
	for (unsigned i = 1; i < 4; i++)
		sum[i] = fold_wide(sum[i - 1], near, sum[i]);
	for (; len - at >= 64; at += 64)
		sum[3] = fold_wide(sum[3], near, copy_wide(dst + at, src + at));
	_mm_storeu_si128((__m128i *)rest, lanes_fold(sum[3]));
	crc = icrc_update(UINT32_MAX, rest, sizeof(rest));
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
copy_folding(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	(void)dst, (void)src, (void)len;
	assert(false); /* never called: wide is false */
	return crc;
}

#endif

uint32_t
icrc_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	if (likely(wide))
		return copy_folding(crc, dst, src, len);
	memcpy(dst, src, len);
	return icrc_update(crc, dst, len);
}

struct icrc_sum
icrc_sum_copy(struct icrc_sum sum, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint32_t before = icrc_update(sum.crc, sum.from, (size_t)(dst - sum.from));

	return (struct icrc_sum){
		.from = dst + len, .crc = icrc_copy(before, dst, src, len)};
}
