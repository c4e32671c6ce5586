/* SPDX-License-Identifier: BSD-3-Clause */
/* Half of the mutations insert, remove or repeat steps. The other half is libFuzzer's. */
#include "../unit/rand.h"

#include "qp_world.h"

#define OPS 13

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(
	uint8_t *data, size_t size, size_t max_size, unsigned seed);

static size_t
steps_insert(uint8_t *data, size_t size, size_t at, const uint8_t *steps, size_t len)
{
	memmove(data + at + len, data + at, size - at);
	memcpy(data + at, steps, len);
	return size + len;
}

static size_t
steps_remove(uint8_t *data, size_t size, size_t at, size_t len)
{
	memmove(data + at, data + at + len, size - at - len);
	return size - len;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	uint64_t rand = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
	size_t steps = size / STEP_LEN, from, len;
	uint8_t fresh[8 * STEP_LEN];

	if (steps < 2 || size + sizeof(fresh) > max_size || rand_below(&rand, 2) == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	from = (1 + rand_below(&rand, steps - 1)) * STEP_LEN;
	len = (1 + rand_below(&rand, 4)) * STEP_LEN;
	switch (rand_below(&rand, 4)) {
	case 0:
		return steps_remove(
			data, size, from, len < size - from ? len : size - from);
	case 1: /* copy steps from another place */
		len = len < size - from ? len : size - from;
		memcpy(fresh, data + from, len);
		return steps_insert(data, size,
			(1 + rand_below(&rand, steps - 1)) * STEP_LEN, fresh, len);
	case 2:
		data[from + rand_below(&rand, STEP_LEN)] = (uint8_t)rand_next(&rand);
		return size;
	default:
		for (size_t i = 0; i < len; i++)
			fresh[i] = (uint8_t)rand_next(&rand);
		for (size_t i = 0; i < len; i += STEP_LEN)
			fresh[i] = (uint8_t)(fresh[i] % OPS | (fresh[i] & 0x80));
		return steps_insert(data, size, from, fresh, len);
	}
}
