/* SPDX-License-Identifier: BSD-3-Clause */
/* Opcodes and packets as text. */
#ifndef ROCADE_TEST_PRINT_H
#define ROCADE_TEST_PRINT_H

#include "wire/pkt_parse.h"

/* Returns for example "RC SEND_ONLY"; for an unknown opcode "opcode 0x15", in a
 * thread-local buffer. */
const char *opcode_name(uint8_t opcode);

/* Prints one line without newline, for example
 *
 *   "198.18.0.11 > 198.18.0.12 RC SEND_ONLY qp 0x13 psn 0x1000 ackreq len 5 pad 3"
 *
 * with the fields of the opcode's extended headers. Returns what snprintf() would. */
int pkt_print(char *buf, size_t size, const struct pkt_view *view);

#endif
