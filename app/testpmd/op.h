/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of --op, and the order in which a mix posts them. Both ends compute which operation
 * a message is from its number. */
#ifndef TESTPMD_OP_H
#define TESTPMD_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocade/flush.h>

enum op_kind {
#define OP(id, name, opcode, types, flags) OP_##id,
#include "op.def"
	OP_KINDS
};

enum type_kind { TYPE_RC, TYPE_UC, TYPE_UD, TYPE_XRC, TYPE_KINDS };

enum op_flag {
	OP_GIVES = 1,    /* its payload goes to the peer */
	OP_RECEIVED = 2, /* completes a receive of the peer */
	OP_IMM = 4,      /* carries immediate data */
	OP_RING = 8,     /* goes to a slot of the peer's ring (target.h) */
	OP_WORD = 16,    /* has 8 bytes, whatever --size says */
	OP_INV = 32,     /* invalidates a memory window of the peer (mws.h) */
	OP_EMPTY = 64    /* has no bytes, whatever --size says */
};

struct op_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned types; /* 1 << enum type_kind */
	unsigned flags;
};

extern const struct op_row op_rows[OP_KINDS];

/* Whether messages may be lost, and the run goes on. */
static inline bool
type_is_lossy(enum type_kind type)
{
	return type == TYPE_UC || type == TYPE_UD;
}

bool parse_type(const char *text, enum type_kind *type);
const char *qp_type_name(enum type_kind type);

#define OP_WEIGHT_MAX 1000
#define OP_ORDER_MAX (OP_KINDS * OP_WEIGHT_MAX)
#define OP_WORD_LEN 8

/* A mix. Message n of a QP is the operation order[n % period]. */
struct op_mix {
	uint16_t weights[OP_KINDS]; /* without a common divisor */
	uint32_t period;            /* their sum */
	uint8_t order[OP_ORDER_MAX];
};

#define OP_VALID                                                                                  \
	"send, send-imm, send-inv, write, write-imm, read, fadd, cas, atomic-write or flush, or " \
	"several of them, each with a weight from 1 to 1000: write:70,read:20,send:10"

/* Reads "write", or "write:70,read:20". Returns false, with *mix unchanged, if the text is invalid or
 * names an operation twice. */
bool parse_mix(const char *text, struct op_mix *mix);
/* Writes the mix as parse_mix() reads it. */
void mix_print(const struct op_mix *mix, char *text, size_t size);
/* Returns an operation of the mix that this type of QP does not have, or NULL. */
const struct op_row *mix_lacks(const struct op_mix *mix, enum type_kind type);
/* Writes the names of the operations that this type has. */
void type_ops_print(enum type_kind type, char *text, size_t size);
/* The flags that all operations of the mix have, and those that any has. */
unsigned mix_all(const struct op_mix *mix);
unsigned mix_any(const struct op_mix *mix);

static inline bool
mix_has(const struct op_mix *mix, enum op_kind kind)
{
	return mix->weights[kind] != 0;
}

/* Whether the mix has SENDs only, and nothing else has to be known of the peer. */
static inline bool
mix_is_send(const struct op_mix *mix)
{
	return mix->weights[OP_SEND] == mix->period;
}

/* Where a count of the messages of a QP stands. All 0: before the first message. */
struct op_walk {
	uint64_t msg;    /* number of the next message */
	uint32_t op_i;   /* msg % mix->period */
	uint32_t size_i; /* msg % the number of sizes */
};

static inline void
walk_next(struct op_walk *walk, const struct op_mix *mix, unsigned n_sizes)
{
	walk->msg++;
	if (++walk->op_i >= mix->period)
		walk->op_i = 0;
	if (++walk->size_i >= n_sizes)
		walk->size_i = 0;
}

/* Moves on to the next message, if this one is not of the kind: one that has the flag. */
static inline const struct op_row *
walk_find(struct op_walk *walk, const struct op_mix *mix, unsigned n_sizes, unsigned flag)
{
	while ((op_rows[mix->order[walk->op_i]].flags & flag) == 0)
		walk_next(walk, mix, n_sizes);
	return &op_rows[mix->order[walk->op_i]];
}

/* How many of the first n messages of a QP have the flag. */
uint64_t mix_count(const struct op_mix *mix, uint64_t n, unsigned flag);

#endif
