/* SPDX-License-Identifier: BSD-3-Clause */
/* What a context and those that were imported from its command descriptor share. */
#ifndef ROCADE_VERBS_CONTEXT_FILE_H
#define ROCADE_VERBS_CONTEXT_FILE_H

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "verbs/export.h"

struct context_file {
	LIST_ENTRY(context_file) link;
	struct ibv_device *device; /* exists as long as one of the contexts */
	uint32_t contexts;
	dev_t st_dev; /* of the descriptor */
	ino_t st_ino;
};

/* Makes that of a new context. Returns its command descriptor, or -errno. */
int context_file_create(struct ibv_device *device, struct context_file **out);

/* Counts one more context of the file that a descriptor refers to. NULL: it refers to none of
 * this process. */
struct context_file *context_file_get(int fd);

/* Before the context gives up its port. */
void context_file_put(struct context_file *file);

#endif
