/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process key: random bytes that only this process knows. It shows them with each connection
 * to a daemon over which it attaches or uses RDMA-CM, so that the daemon knows that these are
 * of one process (switch/proto.h). A number of a process would not do: the daemon may be in
 * another PID namespace. A child of fork() does not have the key of its parent: the kernel wipes
 * its copy (madvise(2), MADV_WIPEONFORK), also without handlers of pthread_atfork().
 */
#ifndef ROCADE_SHM_PROCESS_KEY_H
#define ROCADE_SHM_PROCESS_KEY_H

#include "switch/proto.h"

/* Copies the key, which the first call draws. Any thread; takes no lock. Returns 0 or -errno. */
int process_key_get(uint8_t key[SW_PROCESS_KEY]);

#endif
