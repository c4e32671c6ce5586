/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "verify.h"

#define RING_MEM_MAX                                                                     \
	(UINT64_C(256) << 20) /* of all QPs, unless two slots of each need more */
#define READ_SPAN                                                                        \
	(UINT64_C(64) << 10) /* READs of one size begin at offsets up to this one */
#define REMOTE                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC)

uint64_t
target_read_seed(uint64_t offset)
{
	return verify_seed_at(verify_seed(0, 0), offset);
}

int
target_init(struct host *host)
{
	const struct conf *conf = host->conf;
	struct target *target = &host->target;
	struct target_map *map = &target->map;
	uint64_t stride = ((conf->size_cap | 7) + 63) & ~UINT64_C(63);
	uint64_t fit = RING_MEM_MAX / stride / host->n_conns;

	map->stride = stride;
	map->slots = (uint32_t)(fit < 2                    ? 2
				: fit < conf->sq_depth * 2 ? fit
							   : conf->sq_depth * 2);
	map->read_len = stride + READ_SPAN;
	target->len = target_slot(map, host->n_conns, host->n_conns, 0);
	target->mem = buffer_map(target->len);
	if (target->mem == NULL)
		return ENOMEM;
	target->mr = ibv_reg_mr(host->verbs.pd, target->mem, target->len, REMOTE);
	if (target->mr == NULL) {
		int rc = errno;

		target_fini(target);
		return rc;
	}
	map->addr = (uintptr_t)target->mem;
	map->rkey = target->mr->rkey;
	return 0;
}

void
target_fini(struct target *target)
{
	if (target->mr != NULL)
		ibv_dereg_mr(target->mr);
	buffer_unmap(target->mem, target->len);
	*target = (struct target){0};
}

void
target_fill(struct host *host)
{
	struct target *target = &host->target;

	if (!target->filled)
		verify_fill(target->mem, target->map.read_len, target_read_seed(0));
	target->filled = true;
}

void
target_restart(struct host *host, const struct conn *conn)
{
	unsigned i = (unsigned)(conn - host->conns);

	if (host->target.mem != NULL)
		memset(host->target.mem + target_word(&host->target.map, i, 0), 0,
			WORDS_OF_QP * sizeof(uint64_t));
}

/* Checks the slot of the next WRITE. */
static bool
slot_check(struct host *host, struct conn *conn)
{
	const struct conf *conf = host->conf;
	struct op_walk *at = &conn->ring.at;
	const struct op_row *op = walk_find(at, &conf->mix, conf->n_sizes, OP_RING);
	uint64_t len = op_len(conf, op, at->size_i);
	const uint8_t *data = host->target.mem +
			      target_slot(&host->target.map, host->n_conns,
				      (unsigned)(conn - host->conns), conn->ring.checked);
	bool right = host_verify(host, conn, op->name, at->msg, data, len,
		verify_seed(conn->qpn, at->msg));

	if ((op->flags & OP_RECEIVED) == 0) {
		host->tally.messages++;
		host->tally.bytes += len;
	}
	conn->ring.checked++;
	walk_next(at, &conf->mix, conf->n_sizes);
	return right;
}

bool
target_verify(struct host *host, struct conn *conn, uint64_t end)
{
	bool right = true;

	while (conn->ring.checked < end)
		right &= slot_check(host, conn);
	return right;
}
