/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <ucontext.h>

#include "base/common.h"
#include "mem/on_demand.h"

#define PAGE_MIN 4096u /* of all architectures */

__thread struct on_demand_span on_demand_touched;

/* An instruction that may fault, and the address at which the thread then continues: both
 * relative to their own place. The linker defines the ends of the section. */
struct fixup {
	int64_t fault;
	int64_t resume;
};
extern const struct fixup __start_on_demand_fixups[]
	__attribute__((visibility("hidden")));
extern const struct fixup __stop_on_demand_fixups[] __attribute__((visibility("hidden")));

#define FIXUP(fault, resume)                                                             \
	".pushsection on_demand_fixups, \"a\"\n"                                         \
	".balign 8\n"                                                                    \
	".quad " fault " - .\n"                                                          \
	".quad " resume " - .\n"                                                         \
	".popsection\n"

#if defined(__x86_64__)

static inline bool
touch_read(uintptr_t byte)
{
	bool done = false;
	uint8_t value;

	__asm__ volatile("1: movb (%[byte]), %[value]\n"
			 "movb $1, %[done]\n"
			 "2:\n" FIXUP("1b", "2b")
			 : [done] "+q"(done), [value] "=&q"(value)
			 : [byte] "r"(byte)
			 : "memory");
	return done;
}

static inline bool
touch_write(uintptr_t byte)
{
	bool done = false;

	__asm__ volatile("1: lock orb $0, (%[byte])\n"
			 "movb $1, %[done]\n"
			 "2:\n" FIXUP("1b", "2b")
			 : [done] "+q"(done)
			 : [byte] "r"(byte)
			 : "memory", "cc");
	return done;
}

#define PROGRAM_COUNTER(context) ((context)->uc_mcontext.gregs[REG_RIP])

#elif defined(__aarch64__)

static inline bool
touch_read(uintptr_t byte)
{
	uint32_t done = 0, value;

	__asm__ volatile("1: ldrb %w[value], [%[byte]]\n"
			 "mov %w[done], #1\n"
			 "2:\n" FIXUP("1b", "2b")
			 : [done] "+r"(done), [value] "=&r"(value)
			 : [byte] "r"(byte)
			 : "memory");
	return done != 0;
}

static inline bool
touch_write(uintptr_t byte)
{
	uint32_t done = 0, value, failed;

	__asm__ volatile("1: ldxrb %w[value], [%[byte]]\n"
			 "3: stxrb %w[failed], %w[value], [%[byte]]\n"
			 "cbnz %w[failed], 1b\n"
			 "mov %w[done], #1\n"
			 "2:\n" FIXUP("1b", "2b") FIXUP("3b", "2b")
			 : [done] "+r"(done), [value] "=&r"(value), [failed] "=&r"(failed)
			 : [byte] "r"(byte)
			 : "memory");
	return done != 0;
}

#define PROGRAM_COUNTER(context) ((context)->uc_mcontext.pc)

#else
#error "on_demand_touch() needs instructions of this architecture"
#endif

bool
on_demand_touch(uintptr_t host, uint64_t len, bool write)
{
	on_demand_touched = (struct on_demand_span){host, len};
	/* The compiler's fence: a fault between finds the span of this access. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* The first byte, then the first of each page. */
	for (uintptr_t byte = host; byte - host < len;
		byte = (byte | (PAGE_MIN - 1)) + 1) {
		if (unlikely(!(write ? touch_write(byte) : touch_read(byte))))
			return false;
	}
	return true;
}

bool
on_demand_recover(void *context)
{
	ucontext_t *at = context;

	for (const struct fixup *f = __start_on_demand_fixups;
		f != __stop_on_demand_fixups; f++) {
		if ((uint64_t)PROGRAM_COUNTER(at) ==
			(uintptr_t)&f->fault + (uint64_t)f->fault) {
			PROGRAM_COUNTER(at) = (__typeof__(PROGRAM_COUNTER(
				at)))((uintptr_t)&f->resume + (uint64_t)f->resume);
			return true;
		}
	}
	return false;
}
