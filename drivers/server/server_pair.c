/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "server/server_pair.h"
#include "server/server_share.h"

struct pair_memory {
	int fds[2];                  /* -1: closed */
	struct account *accounts[2]; /* NULL: nothing is charged */
	uint32_t kib;                /* of a part */
};

static bool
part_charge(struct account *account, uint32_t kib)
{
	if (!account_take(account, ACCOUNT_memory_kib, kib))
		return false;
	if (account_take(account, ACCOUNT_descriptors, 1))
		return true;
	account_give(account, ACCOUNT_memory_kib, kib);
	return false;
}

static void
fd_release(struct pair_memory *m, unsigned side)
{
	if (m->fds[side] < 0)
		return;
	close(m->fds[side]);
	m->fds[side] = -1;
	account_give(m->accounts[side], ACCOUNT_descriptors, 1);
}

static void
part_release(struct pair_memory *m, unsigned side)
{
	fd_release(m, side);
	account_give(m->accounts[side], ACCOUNT_memory_kib, m->kib);
}

static int
part_create(struct pair_memory *m, unsigned side, size_t size, struct account *account)
{
	if (!part_charge(account, m->kib))
		return -ENOSPC;
	m->accounts[side] = account;
	m->fds[side] = share_memory_create(size);
	if (m->fds[side] >= 0)
		return 0;
	account_give(account, ACCOUNT_descriptors, 1);
	account_give(account, ACCOUNT_memory_kib, m->kib);
	return m->fds[side];
}

static int
memory_make(struct sw_pair *pair)
{
	struct pair_memory *m = alloc_get(&alloc_plain, "pair memory", sizeof(*m));
	size_t size = pair_part_size(&pair->geom);
	int rc;

	if (m == NULL)
		return -ENOMEM;
	m->kib = (uint32_t)(size / 1024);
	rc = part_create(m, 0, size, pair->sides[0].client->account);
	if (rc == 0) {
		rc = part_create(m, 1, size, pair->sides[1].client->account);
		if (rc != 0)
			part_release(m, 0);
	}
	if (rc == 0)
		pair->memory = m;
	else
		alloc_put(&alloc_plain, m, sizeof(*m));
	return rc;
}

static int
memory_seal(struct sw_pair *pair, unsigned side)
{
	const struct pair_memory *m = pair->memory;

	if (m->fds[side] < 0)
		return -EBADF;
	return share_memory_seal(m->fds[side], pair_part_size(&pair->geom));
}

static void
memory_settle(struct sw_pair *pair)
{
	struct pair_memory *m = pair->memory;

	for (unsigned side = 0; side < 2; side++)
		fd_release(m, side);
}

/* The pair has ended: no client asks for a descriptor any more. */
static void
memory_leave(struct sw_pair *pair, unsigned side)
{
	memory_settle(pair);
	part_release(pair->memory, side);
}

static void
memory_free(struct sw_pair *pair)
{
	alloc_put(&alloc_plain, pair->memory, sizeof(struct pair_memory));
}

const struct sw_pair_ops server_pair_ops = {
	.create = memory_make,
	.seal = memory_seal,
	.settle = memory_settle,
	.leave = memory_leave,
	.destroy = memory_free,
};

int
server_pair_fd(struct sw_client *client, const struct sw_reply *reply)
{
	struct sw_pair_side *side;
	const struct pair_memory *m;

	if (reply->qpn != SW_PAIR_OWN && reply->qpn != SW_PAIR_PEER)
		return -1;
	side = sw_pair_side_find(client, reply->client_id);
	m = side->pair->memory;
	return m->fds[sw_pair_side_index(
		reply->qpn == SW_PAIR_OWN ? side : sw_pair_other(side))];
}
