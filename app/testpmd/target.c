/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rocade/flush.h>

#include "host.h"
#include "verify.h"

#define RING_MEM_MAX                                                                     \
	(UINT64_C(256) << 20) /* of all QPs, unless two slots of each need more */
#define READ_SPAN                                                                        \
	(UINT64_C(64) << 10) /* READs of one size begin at offsets up to this one */
#define REMOTE                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |                          \
		ROCADE_ACCESS_FLUSH_GLOBAL)

uint64_t
target_read_seed(bool back, uint64_t offset)
{
	return verify_seed_at(verify_seed(back ? VERIFY_BACK : 0, 0), offset);
}

int
target_init(struct host *host)
{
	const struct conf *conf = host->conf;
	struct target *target = &host->target;
	struct target_map *map = &target->map;
	uint64_t stride = ((conf->size_cap | 7) + 63) & ~UINT64_C(63);
	uint64_t fit = RING_MEM_MAX / stride / host->n_conns / host->head->n_hosts;

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
	bool back = host_is_back(host, false);

	if (!target->filled || target->back != back)
		verify_fill(target->mem, target->map.read_len, target_read_seed(back, 0));
	target->filled = true;
	target->back = back;
}

void
target_restart(struct host *host, const struct conn *conn)
{
	const struct target_map *map = &host->target.map;
	unsigned i = (unsigned)(conn - host->conns);

	if (host->target.mem == NULL)
		return;
	memset(host->target.mem + target_word(map, i, 0), 0,
		WORDS_OF_QP * sizeof(uint64_t));
	/* The slots that a lossy run has not checked. Others are clear. */
	if (type_is_lossy(host->conf->type) && host->exchange.asked.session != 0)
		memset(host->target.mem + target_slot(map, host->n_conns, i, 0), 0,
			map->slots * map->stride);
}

/* The WRITE at a place of a QP's messages, and what its slot holds. */
struct slot {
	const struct op_row *op;
	uint8_t *data;
	uint64_t msg, len, seed;
};

/* Moves *at on to the next WRITE, which is the wth of the QP. */
static struct slot
slot_find(struct host *host, const struct conn *conn, struct op_walk *at, uint64_t w)
{
	const struct conf *conf = host->conf;
	const struct op_row *op = walk_find(at, &conf->mix, conf->n_sizes, OP_RING);
	unsigned i = (unsigned)(conn - host->conns);

	return (struct slot){.op = op,
		.data = host->target.mem +
			target_slot(&host->target.map, host->n_conns, i, w),
		.msg = at->msg,
		.len = op_len(conf, op, at->size_i),
		.seed = verify_seed(conn->flow_in, at->msg)};
}

/* Returns false if a byte is neither that of the message, nor 0. */
static bool
lossy_slot_verify(struct host *host, const struct conn *conn, const struct slot *slot)
{
	size_t first;

	if (verify_check(slot->data, slot->len, slot->seed, &first) == 0)
		return host_verify(host, conn, slot->op->name, slot->msg, slot->data,
			slot->len, slot->seed);
	for (uint64_t i = 0; i < slot->len; i++) {
		if (slot->data[i] == 0)
			slot->data[i] = verify_byte(slot->seed, i);
	}
	if (verify_check(slot->data, slot->len, slot->seed, &first) != 0)
		return host_verify(host, conn, slot->op->name, slot->msg, slot->data,
			slot->len, slot->seed);
	return true;
}

/* Checks the slot of the next WRITE. */
static bool
slot_verify(struct host *host, struct conn *conn)
{
	const struct conf *conf = host->conf;
	struct slot slot = slot_find(host, conn, &conn->checked.at, conn->checked.writes);
	uint64_t verified = host->tally.verified_bytes;
	bool counts = (slot.op->flags & OP_RECEIVED) == 0,
	     lossy = type_is_lossy(conf->type), right;

	right = lossy ? lossy_slot_verify(host, conn, &slot)
		      : host_verify(host, conn, slot.op->name, slot.msg, slot.data,
				slot.len, slot.seed);
	if (lossy)
		memset(slot.data, 0, slot.len);
	if (counts && host->tally.verified_bytes == verified && slot.len != 0) {
		host->tally.lost++;
	} else if (counts) {
		host->tally.messages++;
		host->tally.bytes += slot.len;
	}
	conn->checked.writes++;
	walk_next(&conn->checked.at, &conf->mix, conf->n_sizes);
	return right;
}

bool
target_verify(struct host *host, struct conn *conn, uint64_t end)
{
	bool right = true;

	while (conn->checked.writes < end)
		right &= slot_verify(host, conn);
	return right;
}

bool
target_is_complete(struct host *host, const struct conn *conn, uint64_t end)
{
	struct op_walk at = conn->checked.at;
	size_t first;

	for (uint64_t w = conn->checked.writes; w < end; w++) {
		struct slot slot = slot_find(host, conn, &at, w);

		if (verify_check(slot.data, slot.len, slot.seed, &first) != 0)
			return false;
		walk_next(&at, &host->conf->mix, host->conf->n_sizes);
	}
	return true;
}
