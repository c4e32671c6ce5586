/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#ifndef ROCADE_WIRE_PRINT_H
#define ROCADE_WIRE_PRINT_H

#include "wire/pkt_parse.h"

/* Prints one line without newline, for example
 *
 *   "198.18.0.11 > 198.18.0.12 RC SEND_ONLY qp 0x13 psn 0x1000 ackreq len 5 pad 3"
 *
 * with the fields of the opcode's extended headers. Returns what snprintf() would. */
int pkt_print(char *buf, size_t size, const struct pkt_view *view);

#endif
