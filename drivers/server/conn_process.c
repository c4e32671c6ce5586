/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "server/conn_process.h"

static_assert(sizeof(((struct conn *)0)->key) == SW_PROCESS_KEY &&
		      sizeof(((struct sw_request *)0)->sgid) == SW_PROCESS_KEY,
	"the key is in the place of sgid");

/* A process that chooses keys of one bucket lengthens its own: keys of others are secret. */
static struct key_bucket *
key_bucket_of(const struct conn *conn)
{
	return &conn->daemon->by_key[conn->key[0] % KEY_BUCKETS];
}

static bool
has_key(const struct conn *conn)
{
	return (conn->key[0] | conn->key[1]) != 0;
}

bool
conn_process_is_same(const struct conn *a, const struct conn *b)
{
	return a == b || (has_key(a) && a->key[0] == b->key[0] && a->key[1] == b->key[1]);
}

void
conn_process_take(struct conn *conn, const struct sw_request *req)
{
	if ((req->type != SW_ATTACH && req->type != SW_CM_OPEN) || has_key(conn))
		return;
	memcpy(conn->key, req->sgid, sizeof(conn->key));
	if (has_key(conn))
		LIST_INSERT_HEAD(key_bucket_of(conn), conn, key_link);
}

void
conn_process_forget(struct conn *conn)
{
	if (has_key(conn))
		LIST_REMOVE(conn, key_link);
	memset(conn->key, 0, sizeof(conn->key));
}

void
conn_process_each(const struct conn *conn, void (*fn)(const struct conn *conn))
{
	const struct conn *other;

	if (!has_key(conn)) {
		fn(conn);
		return;
	}
	LIST_FOREACH(other, key_bucket_of(conn), key_link)
	{
		if (conn_process_is_same(other, conn))
			fn(other);
	}
}
