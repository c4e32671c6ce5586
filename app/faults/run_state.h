/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command that runs has reached, as one number: the same number means that nothing has changed. It is of the
 * processes, of what they have written, of the faults that were applied, and of the QPs and connections that the daemons of
 * these processes show: their states, completed requests, received messages and ACK timeouts. */
#ifndef FAULTS_RUN_STATE_H
#define FAULTS_RUN_STATE_H

#include <stdint.h>

#include "process_tree.h"

/* files: paths whose lengths count, which end with NULL. */
uint64_t run_state(const struct process_tree *t, const char *const *files);

#endif
