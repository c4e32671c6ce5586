/* SPDX-License-Identifier: BSD-3-Clause */
/* The replacement for /dev/infiniband/rdma_cm: descriptors to which librdmacm writes
 * commands, and which it polls for events. */
#ifndef ROCADE_PRELOAD_CHANNEL_H
#define ROCADE_PRELOAD_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHANNEL_PATH "/dev/infiniband/rdma_cm"

/* As open() of that path: returns a descriptor, -1 with errno, or -2 if there is no
 * server. */
int channel_open(int flags);
/* Returns whether fd is a channel. Costs one load if fd never was one. */
bool channel_is(int fd);
/* Returns the number of the device that fstat() shows of a channel. */
dev_t channel_device(void);
/* Called after `to` became a duplicate of `from`. Returns to, or -1 with errno. */
int channel_dup(int from, int to);
/* As write(): runs a command. Returns -2 if fd is no channel. */
ssize_t channel_write(int fd, const void *buf, size_t len);
/* For ucm_disconnect_set(): hangs up the channels of this connection with the daemon. */
void channels_of_daemon_disconnect(uint32_t generation);

#endif
