/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections, and their tables: by local ID, by the peer's ID, by the peer's QPN.
 * Internal to lib/cm. Allocated and freed by state.c alone; looked up by the files that
 * handle received messages. */
#ifndef ROCADE_CM_TABLE_H
#define ROCADE_CM_TABLE_H

#include "cm/cm_types.h"

/* Returns a connection in state FREE with a new ID, or NULL if none is left. The caller
 * sets another state. */
struct cm_conn *conn_alloc(struct cm *cm);
void conn_free(struct cm_conn *conn);
/* guid: 0 for SIDR messages, which carry none. */
struct cm_peer peer_of(const struct cm_path *path, uint64_t guid);
/* Returns the bucket of the address of the path's peer. */
unsigned source_bucket(const struct cm *cm, const struct cm_path *path);
/* Find a connection by the local ID, the peer's ID or the peer's QPN. Return NULL if
 * there is none. */
struct cm_conn *conn_find(struct cm *cm, uint32_t local_id);
struct cm_conn *conn_find_id(
	struct cm *cm, const struct cm_peer *peer, uint32_t remote_id, bool sidr);
struct cm_conn *conn_find_qpn(struct cm *cm, const struct cm_peer *peer, uint32_t qpn);
void conn_hash_id(struct cm_conn *conn);
void conn_hash_qpn(struct cm_conn *conn);
/* Removes the connection from the tables by_id and by_qpn. */
void conn_unhash(struct cm_conn *conn);
void conn_unhash_qpn(struct cm_conn *conn);

#endif
