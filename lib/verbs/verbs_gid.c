/* SPDX-License-Identifier: BSD-3-Clause */
/* The GID table: ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_gid_table(3). */
#include <string.h>

#include "verbs/forward.h"
#include "verbs/objects.h"

/* Returns 0, ENODATA (empty slot), EINVAL or ENODEV. */
static int
gid_entry_read(
	struct dev *dev, uint32_t port_num, uint32_t index, struct ibv_gid_entry *entry)
{
	static const uint8_t empty[16];

	if (dev == NULL)
		return ENODEV;
	if (port_num != 1 || index >= DEV_GIDS)
		return EINVAL;
	memset(entry, 0, sizeof(*entry));
	pthread_mutex_lock(&dev->lock);
	memcpy(entry->gid.raw, dev->gids[index], sizeof(entry->gid.raw));
	pthread_mutex_unlock(&dev->lock);
	if (memcmp(entry->gid.raw, empty, sizeof(empty)) == 0)
		return ENODATA;
	entry->gid_index = index;
	entry->port_num = port_num;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}

EXPORT int
ibv_query_gid(
	struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int err;

	if (!context_is_ours(context))
		return forward(-1, ibv_query_gid, context, port_num, index, gid);
	err = index < 0 ? EINVAL
			: gid_entry_read(to_ctx(context)->dev, port_num, (uint32_t)index,
				  &entry);
	/* ibv_query_gid() reads an empty slot as zeros. */
	if (err != 0 && err != ENODATA)
		return minus_errno(err);
	*gid = entry.gid;
	return 0;
}

EXPORT int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry full;
	int err;

	if (!context_is_ours(context))
		return forward(ENOSYS, _ibv_query_gid_ex, context, port_num, gid_index,
			entry, flags, entry_size);
	if (flags != 0)
		return errno_set(EOPNOTSUPP);
	err = gid_entry_read(to_ctx(context)->dev, port_num, gid_index, &full);
	if (err != 0)
		return errno_set(err);
	memset(entry, 0, entry_size);
	memcpy(entry, &full, RTE_MIN(entry_size, sizeof(full)));
	return 0;
}

EXPORT ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
	size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry full[DEV_GIDS];
	size_t n = 0;

	if (!context_is_ours(context))
		return forward(-ENOSYS, _ibv_query_gid_table, context, entries,
			max_entries, flags, entry_size);
	if (flags != 0)
		return -errno_set(EOPNOTSUPP);
	for (uint32_t i = 0; i < DEV_GIDS; i++)
		n += gid_entry_read(to_ctx(context)->dev, 1, i, &full[n]) == 0;
	if (max_entries == 0 || n > max_entries)
		return -errno_set(EINVAL);
	for (size_t i = 0; i < n; i++) {
		uint8_t *to = (uint8_t *)entries + i * entry_size;

		memset(to, 0, entry_size);
		memcpy(to, &full[i], RTE_MIN(entry_size, sizeof(full[i])));
	}
	return (ssize_t)n;
}

EXPORT int
ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type)
{
	struct ibv_gid_entry entry;
	int err;

	if (!context_is_ours(context))
		return forward(-1, ibv_query_gid_type, context, port_num, index, type);
	err = gid_entry_read(to_ctx(context)->dev, port_num, index, &entry);
	if (err != 0 && err != ENODATA)
		return minus_errno(err);
	*type = err == 0;
	return 0;
}
