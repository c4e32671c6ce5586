/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "qp/qp.h"

struct transition {
	uint16_t types; /* a bit for each enum ibv_qp_type */
	uint8_t from;
	uint8_t to;
	int required;
	int optional;
};

static const struct transition transitions[] = {
#define A(name) IBV_QP_##name
#define T(type) (1u << IBV_QPT_##type)
#define TRANSITION(types, from, to, required, optional)                                  \
	{types, IBV_QPS_##from, IBV_QPS_##to, required, optional},
#include "qp/transition.def"
#undef A
};

static int
mask_check(const struct transition *t, int mask)
{
	int given = mask & ~IBV_QP_STATE;

	if ((given & t->required) != t->required)
		return -EINVAL;
	return (given & ~(t->required | t->optional)) == 0 ? 0 : -EINVAL;
}

int
qp_transition_check(
	enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	if (to == IBV_QPS_RESET)
		return mask == IBV_QP_STATE ? 0 : -EINVAL;
	if (to == IBV_QPS_ERR)
		return mask == IBV_QP_STATE && from != IBV_QPS_RESET ? 0 : -EINVAL;
	for (size_t i = 0; i < RTE_DIM(transitions); i++) {
		const struct transition *t = &transitions[i];

		if ((t->types >> type & 1) != 0 && t->from == from && t->to == to)
			return mask_check(t, mask);
	}
	return -EINVAL;
}
