/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who serves rdma_cm to this process: a driver says so once, before main(), and what
 * stands in the place of /dev/infiniband/rdma_cm asks here.
 */
#ifndef ROCADE_UCM_BACKEND_H
#define ROCADE_UCM_BACKEND_H

#include "ucm/abi.h"

/* A channel to its server; of another life of the process (before a fork()) it is dead.
 */
struct ucm_token {
	uint32_t number;
	uint32_t life;
};

/* Each from any thread; no point of cancellation. */
struct ucm_backend {
	/* A channel, and a descriptor that is readable while it has events and the
	 * server's hang-up when it ends; its last close() closes the channel. -ENOENT,
	 * -ECONNREFUSED: nobody serves; -errno. */
	int (*open)(struct ucm_token *token, int *fd);
	/* A command of ucm/abi.h; out: room for UCM_MAX bytes. Events that the command
	 * took away are no longer to be seen at fd. 0, or the -errno of the write();
	 * -ENODEV: nobody serves any more. */
	int (*command)(const struct ucm_token *token, int fd, uint32_t cmd,
		const void *in, size_t in_len, void *out, size_t *out_len);
};

void
ucm_backend_set(const struct ucm_backend *backend);
/* NULL: nobody. */
const struct ucm_backend *
ucm_backend_get(void);

#endif
