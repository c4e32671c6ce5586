/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables for libraries on top of verbs (UCX, NCCL). */
#ifndef ROCADE_RUN_STACKS_H
#define ROCADE_RUN_STACKS_H

/* Sets the variables that the user has not set. */
void stacks_env_set(const char *device);

#endif
