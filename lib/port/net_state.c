/* SPDX-License-Identifier: BSD-3-Clause */
/* The two values that are read without the lock: generation and deadline. */
#include "port/net_state.h"

void
net_generation_bump(struct net *net)
{
	/* Pairs with the acquire in net_generation(): a thread that reads the new number
	 * and resolves again gets the new state. The lock orders the rest. */
	__atomic_store_n(&net->generation, net->generation + 1, __ATOMIC_RELEASE);
}

uint32_t
net_generation(const struct net *net)
{
	return __atomic_load_n(&net->generation, __ATOMIC_ACQUIRE);
}

void
net_deadline_update(struct net *net)
{
	uint64_t next_ns = wheel_next(&net->wheel);

	if (!TAILQ_EMPTY(&net->due_first) || !TAILQ_EMPTY(&net->due_again))
		next_ns = RTE_MIN(next_ns, rate_ready_ns(&net->request_rate));
	if (!TAILQ_EMPTY(&net->due_passive))
		next_ns = RTE_MIN(next_ns, rate_ready_ns(&net->passive_rate));
	if (!TAILQ_EMPTY(&net->groups_due))
		next_ns = RTE_MIN(next_ns, rate_ready_ns(&net->report_rate));
	if (net->announce_at < net->conf.addr_count || neigh_sweeps(net))
		next_ns = 0;
	/* Relaxed: a hint; net_tx() checks again under the lock. */
	__atomic_store_n(&net->deadline_ns, next_ns, __ATOMIC_RELAXED);
}

uint64_t
net_deadline(const struct net *net)
{
	return __atomic_load_n(&net->deadline_ns, __ATOMIC_RELAXED);
}
