/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The opcode table: the headers of each opcode and its position in a message. */
#ifndef ROCADE_WIRE_OPCODE_H
#define ROCADE_WIRE_OPCODE_H

#include "base/common.h"

/* Extended headers, in wire order. */
#define HDR_XRCETH 0x001
#define HDR_DETH 0x002
#define HDR_FETH 0x004
#define HDR_RETH 0x008
#define HDR_ATOMIC 0x010
#define HDR_AETH 0x020
#define HDR_ATOMIC_ACK 0x040
#define HDR_IMM 0x080
#define HDR_IETH 0x100
#define HDR_SETH 0x200 /* docs/protocol.md 20.4 */

/* The longest combination: XRCETH and AtomicETH. */
#define EXT_LEN_MAX 32

#define OP_SERVICE_MASK 0xE0
#define OP_SERVICE_SHIFT 5

enum op_service { /* bits 7-5 of the opcode */
	SERVICE_RC = 0,
	SERVICE_UC = 1,
	SERVICE_UD = 3,
	SERVICE_CNP = 4,
	SERVICE_XRC = 5,
	SERVICE_VENDOR = 7, /* reserved for manufacturers */
};

enum op_kind {
	OP_UNKNOWN,
	/* requests */
	OP_SEND,
	OP_WRITE,
	OP_READ,
	OP_COMPARE_SWAP,
	OP_FETCH_ADD,
	OP_FLUSH,
	OP_ATOMIC_WRITE,
	/* responses */
	OP_READ_RESP,
	OP_ACK,
	OP_ATOMIC_ACK,
	OP_SACK, /* docs/protocol.md 20.4 */
	/* neither */
	OP_CNP,
};

/* op_row.pos: ONLY is first and last, MIDDLE neither. */
#define POS_M 0
#define POS_F 1
#define POS_L 2
#define POS_O 3

struct op_row {
	uint8_t kind; /* enum op_kind; OP_UNKNOWN where the table has no row */
	uint8_t pos;
	uint8_t service;
	uint8_t ext_len; /* bytes of all extended headers */
	uint16_t hdrs;   /* HDR_* */
	/* offset from the BTH's end of the RETH, AtomicETH, AETH or DETH */
	uint8_t main_off;
	uint8_t reserved;
};

#define OPCODE(value, name, service, kind, pos, hdrs) OPCODE_##name = (value),
enum opcode {
#include "wire/opcode.def"
};

extern const struct op_row op_rows[256];

static inline bool
op_is_first(const struct op_row *op)
{
	return (op->pos & POS_F) != 0;
}

static inline bool
op_is_last(const struct op_row *op)
{
	return (op->pos & POS_L) != 0;
}

static inline bool
op_is_response(const struct op_row *op)
{
	return op->kind >= OP_READ_RESP && op->kind <= OP_SACK;
}

#endif
