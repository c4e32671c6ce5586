/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <common/number.h>

#include "testpmd_parse.h"

#define T(type) (1u << TYPE_##type)
const struct op_row op_rows[OP_KINDS] = {
#define OP(id, name, opcode, types, flags) {name, opcode, types, flags},
#include "op.def"
};

static const char *const type_names[] = {"rc", "uc", "ud", "xrc", NULL};

bool
parse_type(const char *text, enum type_kind *type)
{
	uint64_t index;

	if (!parse_word(text, type_names, &index))
		return false;
	*type = (enum type_kind)index;
	return true;
}

const char *
qp_type_name(enum type_kind type)
{
	return type_names[type];
}

/* Spreads the operations: each message is the one that is furthest behind its share. */
static void
mix_order(struct op_mix *mix)
{
	int64_t behind[OP_KINDS] = {0};

	for (uint32_t at = 0; at < mix->period; at++) {
		unsigned next = 0;

		for (unsigned i = 0; i < OP_KINDS; i++) {
			behind[i] += mix->weights[i];
			if (behind[i] > behind[next])
				next = i;
		}
		behind[next] -= mix->period;
		mix->order[at] = (uint8_t)next;
	}
}

static unsigned
weights_divisor(unsigned a, unsigned b)
{
	while (b != 0) {
		unsigned rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void
mix_reduce(struct op_mix *mix)
{
	unsigned divisor = 0;

	for (unsigned i = 0; i < OP_KINDS; i++)
		divisor = weights_divisor(divisor, mix->weights[i]);
	mix->period = 0;
	for (unsigned i = 0; i < OP_KINDS; i++) {
		mix->weights[i] = (uint16_t)(mix->weights[i] / divisor);
		mix->period += mix->weights[i];
	}
}

struct mix_list {
	struct op_mix mix;
	bool alone; /* without a weight */
};

/* Reads "NAME" or "NAME:WEIGHT". */
static const char *
item_op(const char *item, void *list, unsigned n)
{
	struct mix_list *into = list;
	size_t len = strcspn(item, ":");
	uint64_t weight = 1;

	(void)n;
	if (item[len] == ':' ? !parse_number(item + len + 1, 1, OP_WEIGHT_MAX, &weight)
			     : !into->alone)
		return "has no weight from 1 to 1000 behind :";
	for (unsigned i = 0; i < OP_KINDS; i++) {
		if (strncmp(item, op_rows[i].name, len) != 0 ||
			op_rows[i].name[len] != '\0')
			continue;
		if (into->mix.weights[i] != 0)
			return "comes twice";
		into->mix.weights[i] = (uint16_t)weight;
		return NULL;
	}
	return "is no operation";
}

bool
parse_mix(const char *text, struct op_mix *mix)
{
	struct mix_list list = {.alone = strchr(text, ',') == NULL};
	struct op_mix new;

	if (parse_list(text, &list, OP_KINDS, item_op) == 0)
		return false;
	new = list.mix;
	mix_reduce(&new);
	mix_order(&new);
	*mix = new;
	return true;
}

void
mix_print(const struct op_mix *mix, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < OP_KINDS && len < size; i++) {
		if (mix->weights[i] == mix->period)
			len += (size_t)snprintf(
				text + len, size - len, "%s", op_rows[i].name);
		else if (mix->weights[i] != 0)
			len += (size_t)snprintf(text + len, size - len, "%s%s:%u",
				len != 0 ? "," : "", op_rows[i].name, mix->weights[i]);
	}
}

const struct op_row *
mix_lacks(const struct op_mix *mix, enum type_kind type)
{
	for (unsigned i = 0; i < OP_KINDS; i++) {
		if (mix->weights[i] != 0 && (op_rows[i].types & 1u << type) == 0)
			return &op_rows[i];
	}
	return NULL;
}

void
type_ops_print(enum type_kind type, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < OP_KINDS && len < size; i++) {
		if ((op_rows[i].types & 1u << type) != 0)
			len += (size_t)snprintf(text + len, size - len, "%s%s",
				len != 0 ? ", " : "", op_rows[i].name);
	}
}

unsigned
mix_all(const struct op_mix *mix)
{
	unsigned flags = ~0u;

	for (unsigned i = 0; i < OP_KINDS; i++)
		flags &= mix->weights[i] != 0 ? op_rows[i].flags : ~0u;
	return flags;
}

unsigned
mix_any(const struct op_mix *mix)
{
	unsigned flags = 0;

	for (unsigned i = 0; i < OP_KINDS; i++)
		flags |= mix->weights[i] != 0 ? op_rows[i].flags : 0;
	return flags;
}

uint64_t
mix_count(const struct op_mix *mix, uint64_t n, unsigned flag)
{
	uint64_t in_period = 0, in_rest = 0;

	for (uint32_t at = 0; at < mix->period; at++) {
		bool has = (op_rows[mix->order[at]].flags & flag) != 0;

		in_period += has;
		in_rest += has && at < n % mix->period;
	}
	return n / mix->period * in_period + in_rest;
}
