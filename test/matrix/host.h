/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of the device: a port that this program opens, or the system. */
#ifndef ROCADE_MATRIX_HOST_H
#define ROCADE_MATRIX_HOST_H

#include "matrix.h"

/* Prepares the device. options: for example "addr=192.0.2.1/24", or EAL options. Returns
 * NULL or a reason. loop: two devices in this process, joined by a loop. */
const char *host_open(char **options, unsigned count, bool loop);
/* Returns the device's name. which: 0, or 1 for the second device of a loop. */
const char *host_device(unsigned which);
/* Makes the interface a member of the group, which its datagrams need in addition to the
 * attached QP. Returns NULL or a reason. One group at a time. */
const char *host_join(const union ibv_gid *group, unsigned ifindex);
void host_leave(void);
/* Stops the threads that run the device. The other end may close its own only after
 * that. */
void host_stop(void);
void host_close(void);
/* Prints the device's counters, after a failure. */
void host_report(void);

#endif
