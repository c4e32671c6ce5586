/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "server/server_pair.h"
#include "server/server_share.h"

#define SIDE_FDS 2 /* descriptors of a side */

struct pair_memory {
	struct passed_fds *passed;
	int fds[2]; /* of the parts; -1: closed */
	/* The ends of a connection by which the clients wake each other; -1: closed. A client can
	 * send descriptors by its end. */
	int wake_fds[2];
	struct account *accounts[2]; /* NULL: nothing is charged */
	uint32_t kib;                /* of a part */
};

static bool
side_charge(struct account *account, uint32_t kib)
{
	if (!account_take(account, ACCOUNT_memory_kib, kib))
		return false;
	if (account_take(account, ACCOUNT_descriptors, SIDE_FDS))
		return true;
	account_give(account, ACCOUNT_memory_kib, kib);
	return false;
}

static void
fd_close(struct pair_memory *m, unsigned side, int *fd)
{
	if (*fd < 0)
		return;
	account_give(m->accounts[side], ACCOUNT_descriptors, 1);
	passed_fds_close_given(m->passed, m->accounts[side], *fd);
	*fd = -1;
}

static void
side_fds_close(struct pair_memory *m, unsigned side)
{
	fd_close(m, side, &m->fds[side]);
	fd_close(m, side, &m->wake_fds[side]);
}

static void
side_release(struct pair_memory *m, unsigned side)
{
	side_fds_close(m, side);
	account_give(m->accounts[side], ACCOUNT_memory_kib, m->kib);
}

/* Closes the socket of the side if that fails. */
static int
side_create(struct pair_memory *m, unsigned side, size_t size, struct account *account)
{
	int rc = -ENOSPC;

	m->accounts[side] = account;
	m->fds[side] = -1;
	if (side_charge(account, m->kib)) {
		rc = m->fds[side] = share_memory_create(size);
		if (rc >= 0)
			return 0;
		account_give(account, ACCOUNT_descriptors, SIDE_FDS);
		account_give(account, ACCOUNT_memory_kib, m->kib);
	}
	close(m->wake_fds[side]);
	return rc;
}

/* Returns 0 or -errno. Linux 6.16 refuses descriptors in the queues, unless their clients allow them. */
static int
wake_create(struct pair_memory *m)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, m->wake_fds) != 0)
		return -errno;
	for (unsigned side = 0; side < 2; side++)
		(void)passed_fds_refuse(m->wake_fds[side]);
	return 0;
}

static int
sides_create(struct pair_memory *m, size_t size, const struct sw_pair *pair)
{
	int rc = wake_create(m);

	if (rc != 0)
		return rc;
	rc = side_create(m, 0, size, pair->sides[0].client->account);
	if (rc != 0) {
		close(m->wake_fds[1]);
		return rc;
	}
	rc = side_create(m, 1, size, pair->sides[1].client->account);
	if (rc != 0)
		side_release(m, 0);
	return rc;
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
	m->passed = &((struct conn *)pair->sides[0].client->owner)->daemon->passed;
	rc = sides_create(m, size, pair);
	if (rc == 0)
		pair->memory = m;
	else
		alloc_put(&alloc_plain, m, sizeof(*m));
	return rc;
}

static int
memory_check(struct sw_pair *pair, unsigned side)
{
	const struct pair_memory *m = pair->memory;

	if (m->fds[side] < 0)
		return -EBADF;
	return share_memory_check(m->fds[side], pair_part_size(&pair->geom));
}

static void
memory_settle(struct sw_pair *pair)
{
	struct pair_memory *m = pair->memory;

	for (unsigned side = 0; side < 2; side++)
		side_fds_close(m, side);
}

/* The pair has ended: no client asks for a descriptor any more, and none is to be woken. */
static void
memory_leave(struct sw_pair *pair, unsigned side)
{
	side_fds_close(pair->memory, !side);
	side_release(pair->memory, side);
}

static void
memory_free(struct sw_pair *pair)
{
	alloc_put(&alloc_plain, pair->memory, sizeof(struct pair_memory));
}

const struct sw_pair_ops server_pair_ops = {
	.create = memory_make,
	.check = memory_check,
	.settle = memory_settle,
	.leave = memory_leave,
	.destroy = memory_free,
};

unsigned
server_pair_fds(struct sw_client *client, const struct sw_reply *reply, int *fds)
{
	struct sw_pair_side *side;
	const struct pair_memory *m;
	unsigned index;

	if (reply->qpn != SW_PAIR_OWN && reply->qpn != SW_PAIR_PEER)
		return 0;
	side = sw_pair_side_find(client, reply->client_id);
	m = side->pair->memory;
	index = sw_pair_side_index(side);
	if (reply->qpn == SW_PAIR_PEER)
		index = !index;
	if (m->fds[index] < 0)
		return 0;
	fds[0] = m->fds[index];
	fds[1] = m->wake_fds[index];
	return reply->qpn == SW_PAIR_OWN ? 2 : 1;
}
