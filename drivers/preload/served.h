/* SPDX-License-Identifier: BSD-3-Clause */
/* The two kinds of processes in which this folder's files work: a client of the daemon
 * (librocade-verbs: served_client.c), and a program that embeds Rocade (librocade-rdmacm:
 * served_inside.c). */
#ifndef ROCADE_PRELOAD_SERVED_H
#define ROCADE_PRELOAD_SERVED_H

#include <stdbool.h>
#include <sys/types.h>

#include "verbs/device_facts.h"
#include "ucm/backend.h"

struct served {
	/* Returns whether Rocade has a device with this name. NULL: whether it has any. False inside the
	 * real libibverbs, which is to find the kernel's devices only. */
	bool (*device)(const char *name);
	/* Returns whether the node of RDMA-CM opens a channel of Rocade's. */
	bool (*channel)(void);
	/* Returns whether Rocade has a device with this index, and its state; the counters if they are
	 * wanted. */
	bool (*facts)(unsigned index, bool counters, struct device_facts *out);
	/* There may be several devices, and others at another time. */
	bool several;
	/* Returns 0, or, if the process has links of its own, whose states are in no tree of other processes, another number than in
	 * the process that has forked it. NULL: always 0. */
	unsigned (*links)(void);
	/* Writes a line of the log. */
	void (*warn)(const char *line);
	/* Notes a path that a program has looked for in vain, if explains() says that this is wanted.
	 * NULL: never. */
	bool (*explains)(void);
	void (*absent)(const char *path);
	/* netlink.h. NULL: this process has no such sockets. netlink(): whether there is a device that the answers
	 * are about. */
	bool (*netlink)(void);
	ssize_t (*netlink_write)(int fd, const void *bytes, size_t len);
	void (*netlink_dup)(int from, int to);
	/* Returns whether the process has no thread but its main one and Rocade's. NULL: never, because EAL
	 * has threads, too. */
	bool (*main_only)(void);
	/* Returns the server of RDMA-CM; NULL: there is none. */
	const struct ucm_backend *(*backend)(void);
	/* Returns whether this is the path of rocade_rdmacm_check(), which asks whether a call
	 * of open() gets here. */
	bool (*check)(const char *path);
};

extern const struct served served_by;

#endif
