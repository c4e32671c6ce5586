/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Static probes for tracers (USDT): a nop, and a note in the section .note.stapsdt of the library, which says
 * where the nop is and in which registers or memory the arguments are (version 3 of the notes of SystemTap). A
 * tracer such as bpftrace puts a breakpoint there. docs/tasks/trace.md has the probes and their arguments, and
 * test/unit/client/usdt_test.py compares it with the library.
 *
 *     USDT(retransmission, qpn, psn, packets)
 *
 * Arguments are unsigned numbers that the code around has anyway, 2 to 5 of them. USDT_IN_MEMORY() is for
 * members that have just been written or read: the tracer reads them where they are, and no register is needed.
 * <sys/sdt.h> is not used: to the compiler its text is a long function, which changes what it inlines.
 */
#ifndef ROCADE_BASE_USDT_H
#define ROCADE_BASE_USDT_H

#if defined(__x86_64__) || defined(__aarch64__)

/* clang would store the values in memory for a constraint that allows that. */
#ifdef __clang__
#define USDT_ANYWHERE "nr"
#else
#define USDT_ANYWHERE "nor"
#endif

#define USDT_VALUE(i, place, x) [s##i] "n"(sizeof(x)), [a##i] place(x)
#define USDT_FORMAT(i) "%c[s" #i "]@%[a" #i "]"

#define USDT_ASM(name, format, ...)                                                      \
	__asm__ __volatile__ __inline__(                                                 \
		"990: nop\n"                                                             \
		".pushsection .note.stapsdt,\"?\",\"note\"\n"                            \
		".balign 4\n"                                                            \
		".4byte 992f-991f, 994f-993f, 3\n"                                       \
		"991: .asciz \"stapsdt\"\n"                                              \
		"992: .balign 4\n"                                                       \
		"993: .8byte 990b\n"                                                     \
		".8byte _.stapsdt.base\n"                                                \
		".8byte 0\n"                                                             \
		".asciz \"rocade\"\n"                                                    \
		".asciz \"" #name "\"\n"                                                 \
		".asciz \"" format "\"\n"                                                \
		"994: .balign 4\n"                                                       \
		".popsection\n"                                                          \
		".ifndef _.stapsdt.base\n"                                               \
		".pushsection .stapsdt.base,\"aG\",\"progbits\","                        \
		".stapsdt.base,comdat\n"                                                 \
		".weak _.stapsdt.base\n"                                                 \
		".hidden _.stapsdt.base\n"                                               \
		"_.stapsdt.base: .space 1\n"                                             \
		".size _.stapsdt.base, 1\n"                                              \
		".popsection\n"                                                          \
		".endif\n" ::__VA_ARGS__)

#define USDT_2(name, place, a, b)                                                        \
	USDT_ASM(name, USDT_FORMAT(1) " " USDT_FORMAT(2), USDT_VALUE(1, place, a),       \
		USDT_VALUE(2, place, b))
#define USDT_3(name, place, a, b, c)                                                     \
	USDT_ASM(name, USDT_FORMAT(1) " " USDT_FORMAT(2) " " USDT_FORMAT(3),             \
		USDT_VALUE(1, place, a), USDT_VALUE(2, place, b),                        \
		USDT_VALUE(3, place, c))
#define USDT_4(name, place, a, b, c, d)                                                  \
	USDT_ASM(name,                                                                   \
		USDT_FORMAT(1) " " USDT_FORMAT(2) " " USDT_FORMAT(3) " " USDT_FORMAT(4), \
		USDT_VALUE(1, place, a), USDT_VALUE(2, place, b),                        \
		USDT_VALUE(3, place, c), USDT_VALUE(4, place, d))
#define USDT_5(name, place, a, b, c, d, e)                                               \
	USDT_ASM(name,                                                                   \
		USDT_FORMAT(1) " " USDT_FORMAT(2) " " USDT_FORMAT(3) " " USDT_FORMAT(    \
			4) " " USDT_FORMAT(5),                                           \
		USDT_VALUE(1, place, a), USDT_VALUE(2, place, b),                        \
		USDT_VALUE(3, place, c), USDT_VALUE(4, place, d),                        \
		USDT_VALUE(5, place, e))
#define USDT_CHOOSE(a, b, c, d, e, macro, ...) macro
#define USDT_BY_COUNT(name, place, ...)                                                  \
	USDT_CHOOSE(__VA_ARGS__, USDT_5, USDT_4, USDT_3, USDT_2, )                       \
	(name, place, __VA_ARGS__)
#define USDT(name, ...) USDT_BY_COUNT(name, USDT_ANYWHERE, __VA_ARGS__)
#define USDT_IN_MEMORY(name, ...) USDT_BY_COUNT(name, "m", __VA_ARGS__)

#else

static inline void
usdt_none(int first, ...)
{
	(void)first;
}

/* The arguments count as used. */
#define USDT(name, ...)                                                                  \
	do {                                                                             \
		if (0)                                                                   \
			usdt_none(0, __VA_ARGS__);                                       \
	} while (0)
#define USDT_IN_MEMORY(name, ...) USDT(name, __VA_ARGS__)

#endif

#endif
