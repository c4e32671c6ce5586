/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "policer.h"

void
policer_init(struct policer *p, uint64_t mbit_per_s, uint32_t burst)
{
	memset(p, 0, sizeof(*p));
	p->bytes_per_ps = (double)mbit_per_s / 8 / (double)PS_PER_US;
	p->burst = burst;
}

static struct policed_flow *
flow_find(struct policer *p, uint64_t key, uint64_t now)
{
	uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (;; at++) {
		struct policed_flow *flow = &p->flows[at % POLICER_FLOWS];

		if (flow->key == key)
			return flow;
		if (flow->key != 0)
			continue;
		if (++p->count == POLICER_FLOWS)
			abort(); /* a lookup would not end */
		*flow = (struct policed_flow){key, now, p->burst};
		return flow;
	}
}

bool
policer_pass(struct policer *p, const struct frame *f, uint64_t now)
{
	uint64_t key = UINT64_C(1) << 48 | (uint64_t)f->src << 32 |
		       (uint64_t)f->dst << 16 | f->sport;
	struct policed_flow *flow;

	if (p->bytes_per_ps == 0)
		return true;
	flow = flow_find(p, key, now);
	flow->tokens = RTE_MIN(
		p->burst, flow->tokens + (double)(now - flow->since) * p->bytes_per_ps);
	flow->since = now;
	if (flow->tokens < f->len) {
		p->dropped++;
		return false;
	}
	flow->tokens -= f->len;
	return true;
}
