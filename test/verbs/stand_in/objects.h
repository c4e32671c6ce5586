/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of Rocade's device, and the calls of every verb on them. */
#ifndef ROCADE_TEST_STAND_IN_OBJECTS_H
#define ROCADE_TEST_STAND_IN_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "verbs/newer.h"

#define OBJECT_BYTES 4096

struct objects {
	struct ibv_device **list;
	struct ibv_device *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	struct ibv_buf *buf;
	void *buf_bytes;
	struct ibv_comp_cntr *counter;
	union ibv_gid gid;
};

extern struct objects our;
extern char our_bytes[OBJECT_BYTES];

/* Returns the first function of this name that the loader finds, as in a program that is linked with it. */
void *found(const char *name);
/* The same with the type of the function, for one that a header declares. */
#define FOUND(name) ((__typeof__(name) *)found(#name))

/* A row of the table of symbols: a function of Rocade, called on its objects. */
struct verb {
	const char *name, *node;
	void (*call)(void *function);
};
extern const struct verb verbs[];
extern const size_t verb_count;

/* librdmacm's functions that call verbs make a connection, and one of rsockets. Returns whether they could. */
bool connections_work(void);

#endif
