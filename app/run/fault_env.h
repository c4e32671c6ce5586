/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_FAULT_ENV_H
#define RUN_FAULT_ENV_H

#include "run_conf.h"

/* Without --faults: takes the script of the environment, if a process above this one has set one. */
void faults_inherit(struct conf *s);

/* Before anything is started: reads the script, finds the library, and begins the journal. Returns 0, or prints an
 * error and returns an exit code. */
int faults_check(const struct conf *s);

/* Sets the environment by which the program loads the script. separators: of LD_PRELOAD. */
void faults_env_set(const struct conf *s, const char *separators);

#endif
