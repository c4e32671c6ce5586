/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands in the place of /dev/infiniband/rdma_cm: descriptors to which librdmacm
 * writes commands, and which it polls for events.
 */
#ifndef ROCADE_PRELOAD_CHANNEL_H
#define ROCADE_PRELOAD_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>

#define CHANNEL_PATH "/dev/infiniband/rdma_cm"

/* As open() of that path: a descriptor; -1 with errno; -2: nobody serves it here. */
int
channel_open(int flags);
/* Whether it is one of them. Cheap when there is none. */
bool
channel_is(int fd);
/* After to became another descriptor of what from is; returns to, or -1 with errno. */
int
channel_dup(int from, int to);
/* As write(): a command. -2: it is none of them. */
ssize_t
channel_write(int fd, const void *buf, size_t len);

#endif
