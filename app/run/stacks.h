/* SPDX-License-Identifier: BSD-3-Clause */
/* What libraries above verbs want to be told. */
#ifndef ROCADE_RUN_STACKS_H
#define ROCADE_RUN_STACKS_H

/* Puts it into the environment, but for variables that are there: they are the user's. */
void
stacks_env_set(const char *device);

#endif
