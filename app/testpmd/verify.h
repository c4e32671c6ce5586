/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of a message is a function of (QPN of the receiving QP, message number,
 * offset): the receiver recomputes every byte, and nothing of it travels in a header.
 * Eight bytes at a time, little endian: word k is seed + k * odd constant, so that no two
 * words of a message are equal; the seed is mixed, so that messages have nothing in
 * common.
 */
#ifndef TESTPMD_VERIFY_H
#define TESTPMD_VERIFY_H

#include <stddef.h>
#include <stdint.h>

uint64_t verify_seed(uint32_t qpn, uint64_t message);
void verify_fill(void *buf, size_t len, uint64_t seed);
/* How many bytes are wrong; *first: offset of the first of them, set if there are any. */
size_t verify_check(const void *buf, size_t len, uint64_t seed, size_t *first);

#endif
