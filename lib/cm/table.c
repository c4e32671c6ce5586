/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of connections: by local communication ID, by the peer's ID, by the peer's QPN.
 * A local ID is an index with a count above it, in a secret permutation: no ID reveals
 * another one. */
#include <string.h>

#include "cm/table.h"

static uint32_t
id_make(struct cm *cm, uint32_t index)
{
	uint32_t id;

	do {
		id = random_permute(
			&cm->id_key, 0, 32, cm->id_count++ << cm->index_bits | index);
	} while (id == 0); /* 0 means no ID */
	return id;
}

struct cm_conn *
conn_alloc(struct cm *cm)
{
	struct cm_conn *conn;

	if (cm->in_use == cm->conf.max_conns)
		return NULL;
	conn = TAILQ_FIRST(&cm->spare);
	if (conn != NULL)
		TAILQ_REMOVE(&cm->spare, conn, link);
	else
		conn = &cm->conns[cm->in_use]; /* all before it are in use */
	*conn = (struct cm_conn){.cm = cm, .ack_timeout = cm->conf.ack_timeout};
	wheel_timer_init(&conn->timer);
	conn->local_id = id_make(cm, (uint32_t)(conn - cm->conns));
	cm->in_use++;
	return conn;
}

void
conn_unhash_qpn(struct cm_conn *conn)
{
	if (conn->by_qpn)
		LIST_REMOVE(conn, qpn_link);
	conn->by_qpn = false;
}

void
conn_unhash(struct cm_conn *conn)
{
	if (conn->by_id)
		LIST_REMOVE(conn, id_link);
	conn->by_id = false;
	conn_unhash_qpn(conn);
}

void
conn_free(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	conn_unhash(conn);
	wheel_cancel(&cm->wheel, &conn->timer);
	conn->state = CM_FREE;
	TAILQ_INSERT_TAIL(&cm->spare, conn, link);
	cm->in_use--;
}

struct cm_conn *
conn_find(struct cm *cm, uint32_t local_id)
{
	uint32_t index = random_permute_back(&cm->id_key, 0, 32, local_id) &
			 ((1u << cm->index_bits) - 1);
	struct cm_conn *conn = &cm->conns[index];

	return index < cm->conf.max_conns && conn->state != CM_FREE &&
			       conn->local_id == local_id
		       ? conn
		       : NULL;
}

/* The peer chooses key and number. The secret keeps it from choosing the bucket. */
static unsigned
conn_bucket_index(const struct cm *cm, uint64_t key, uint32_t number)
{
	uint64_t in[2] = {key, number};

	return (unsigned)siphash24(&cm->table_key, in, sizeof(in)) % CM_BUCKETS;
}

uint64_t
gid_key(const struct cm *cm, const uint8_t gid[16])
{
	return siphash24(&cm->table_key, gid, 16);
}

struct cm_conn *
conn_find_id(struct cm *cm, uint64_t key, uint32_t remote_id, bool sidr)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_id[conn_bucket_index(cm, key, remote_id)], id_link)
	{
		if (conn->remote_key == key && conn->remote_id == remote_id &&
			conn->sidr == sidr)
			return conn;
	}
	return NULL;
}

struct cm_conn *
conn_find_qpn(struct cm *cm, uint64_t guid, uint32_t qpn)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_qpn[conn_bucket_index(cm, guid, qpn)], qpn_link)
	{
		if (conn->remote_key == guid && conn->remote_qpn == qpn)
			return conn;
	}
	return NULL;
}

void
conn_hash_id(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	LIST_INSERT_HEAD(
		&cm->by_id[conn_bucket_index(cm, conn->remote_key, conn->remote_id)],
		conn, id_link);
	conn->by_id = true;
}

void
conn_hash_qpn(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	LIST_INSERT_HEAD(
		&cm->by_qpn[conn_bucket_index(cm, conn->remote_key, conn->remote_qpn)],
		conn, qpn_link);
	conn->by_qpn = true;
}
