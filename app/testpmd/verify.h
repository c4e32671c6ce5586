/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of a message is a function of (QPN of the receiving QP, direction, message number,
 * offset). The receiver recomputes every byte; no header carries any of it. The payload
 * is made of little-endian 64-bit words: word k is seed + k * odd constant, so that no
 * two words of a message are equal. The seed is mixed, so that messages have nothing in
 * common.
 */
#ifndef TESTPMD_VERIFY_H
#define TESTPMD_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the flows of --mode both that come back: those of the end that does not begin. */
#define VERIFY_BACK 0xa5c396u

/* The QPN-like number that is the same on both ends for the messages from one QP to another one, and the
 * QPN where both have the same. back: with --mode both, from the end that does not begin. So a frame that comes
 * back to its sender is wrong there, even if the QPNs are the same. */
static inline uint32_t
verify_flow(uint32_t from, uint32_t to, bool back)
{
	return ((to + (from ^ to) * 0x9e3779b1u) & 0xffffff) ^ (back ? VERIFY_BACK : 0);
}

uint64_t verify_seed(uint32_t qpn, uint64_t message);
/* The seed of the bytes from an offset, a multiple of 8, on. */
uint64_t verify_seed_at(uint64_t seed, uint64_t offset);
/* The byte at this offset. */
uint8_t verify_byte(uint64_t seed, uint64_t offset);
void verify_fill(void *buf, size_t len, uint64_t seed);
/* Returns the number of wrong bytes. Sets *first to the offset of the first one, if there
 * are any. */
size_t verify_check(const void *buf, size_t len, uint64_t seed, size_t *first);

#endif
