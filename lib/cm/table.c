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
	*conn = (struct cm_conn){.cm = cm,
		.ack_timeout = cm->conf.ack_timeout,
		.ca_guid = cm->conf.ca_guid};
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

struct cm_peer
peer_of(const struct cm_path *path, uint64_t guid)
{
	struct cm_peer peer = {.guid = guid};

	memcpy(peer.addr, path->dgid, 16);
	return peer;
}

/* The peer chooses all that is hashed. The key of the hash is secret, so the peer cannot
 * choose the bucket. */
static unsigned
conn_bucket_index(const struct cm *cm, const struct cm_peer *peer, uint32_t number)
{
	uint64_t in[4] = {peer->guid, number};

	memcpy(&in[2], peer->addr, 16);
	return (unsigned)siphash24(&cm->table_key, in, sizeof(in)) & cm->bucket_mask;
}

unsigned
source_bucket(const struct cm *cm, const struct cm_path *path)
{
	return (unsigned)siphash24(&cm->table_key, path->dgid, 16) % CM_BUCKETS;
}

struct cm_conn *
conn_find_id(struct cm *cm, const struct cm_peer *peer, uint32_t remote_id, bool sidr)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_id[conn_bucket_index(cm, peer, remote_id)], id_link)
	{
		if (conn->remote_id == remote_id && conn->sidr == sidr &&
			memcmp(&conn->peer, peer, sizeof(*peer)) == 0)
			return conn;
	}
	return NULL;
}

struct cm_conn *
conn_find_qpn(struct cm *cm, const struct cm_peer *peer, uint32_t qpn)
{
	struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->by_qpn[conn_bucket_index(cm, peer, qpn)], qpn_link)
	{
		if (conn->remote_qpn == qpn &&
			memcmp(&conn->peer, peer, sizeof(*peer)) == 0)
			return conn;
	}
	return NULL;
}

void
conn_hash_id(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	LIST_INSERT_HEAD(&cm->by_id[conn_bucket_index(cm, &conn->peer, conn->remote_id)],
		conn, id_link);
	conn->by_id = true;
}

void
conn_hash_qpn(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	LIST_INSERT_HEAD(
		&cm->by_qpn[conn_bucket_index(cm, &conn->peer, conn->remote_qpn)], conn,
		qpn_link);
	conn->by_qpn = true;
}
