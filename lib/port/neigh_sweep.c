/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes that concern all neighbours: the port's addresses are others, or its link has come up. The
 * entries are visited a few at a time, by net_tx(). One that is met before, and is not valid any
 * more, is dropped then.
 */
#include "port/net_state.h"

static void
entry_visit(struct net *net, struct neigh *e)
{
	if (e->list == &net->spare || !neigh_check(net, e) || !net->sweep_retries ||
		e->use_list != &net->failed)
		return;
	e->tries = NEIGH_TRIES;
	neigh_mark_due(net, e);
}

void
neigh_sweep(struct net *net)
{
	for (unsigned i = 0; i < NEIGH_SWEEP_BATCH && neigh_sweeps(net); i++)
		entry_visit(net, &net->entries[net->sweep_at++]);
	if (neigh_sweeps(net))
		return;
	net->sweep_at = UINT32_MAX;
	net->sweep_retries = false;
}

static void
sweep_begin(struct net *net)
{
	net->sweep_at = 0;
	neigh_sweep(net);
}

void
neigh_flush(struct net *net, bool all)
{
	net->epoch++;
	if (all)
		net->moved_epoch = net->epoch;
	sweep_begin(net);
}

void
neigh_retry_failed(struct net *net)
{
	net->sweep_retries = true;
	sweep_begin(net);
}
