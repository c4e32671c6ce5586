/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * ISA-L is four times as fast as zlib where the CPU multiplies without carries (PCLMULQDQ,
 * PMULL) or has CRC instructions. Elsewhere it looks up each byte in a table, and zlib is eight
 * times as fast. QEMU's emulation has PCLMULQDQ, and is slow at it: there zlib is twice as fast.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <rte_common.h>
#include <zlib.h>

#include "base/base_log.h"
#include "wire/crc_choice.h"

#ifdef __x86_64__
#include <cpuid.h>

#define HYPERVISOR_BIT 31          /* of ECX of leaf 1 */
#define HYPERVISOR_LEAF 0x40000000 /* its name, in EBX, ECX and EDX */

static bool
is_emulated(void)
{
	unsigned eax, name[3], ecx;

	__cpuid(1, eax, name[0], ecx, name[1]);
	if ((ecx >> HYPERVISOR_BIT) == 0)
		return false;
	__cpuid(HYPERVISOR_LEAF, eax, name[0], name[1], name[2]);
	return memcmp(name, "TCGTCGTCGTCG", sizeof(name)) == 0;
}

static bool
isal_is_fast(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("pclmul") && !is_emulated();
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

#include <asm/hwcap.h>

static bool
isal_is_fast(void)
{
	return (getauxval(AT_HWCAP) & (HWCAP_CRC32 | HWCAP_PMULL)) != 0;
}
#else
static bool
isal_is_fast(void)
{
	return false;
}
#endif

static uint32_t
crc_zlib(uint32_t crc, const unsigned char *data, uint64_t len)
{
	return (uint32_t)crc32_z(crc, data, len);
}

static const struct {
	const char *name;
	crc_fn *fn;
} crcs[] = {{"isal", crc32_gzip_refl}, {"zlib", crc_zlib}};

crc_fn *crc_in_use = crc32_gzip_refl;

crc_fn *
crc_named(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(crcs); i++)
		if (strcmp(name, crcs[i].name) == 0)
			return crcs[i].fn;
	return NULL;
}

/* The first priority that is left to programs: other constructors may compute a CRC. */
static __attribute__((constructor(101))) void
crc_choose(void)
{
	const char *name = getenv("ROCADE_CRC");

	crc_in_use = isal_is_fast() ? crc32_gzip_refl : crc_zlib;
	if (name == NULL)
		return;
	if (crc_named(name) != NULL)
		crc_in_use = crc_named(name);
	else
		log_warn("ROCADE_CRC: unknown library '%s': expected isal or zlib", name);
}
