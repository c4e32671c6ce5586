/* SPDX-License-Identifier: BSD-3-Clause */
/* Which program a command runs. */
#ifndef FAULTS_RUN_PROGRAM_H
#define FAULTS_RUN_PROGRAM_H

/* command: ends with NULL. Of rocade-run its PROGRAM, as the journal of rocade-run names it; else the first word. */
const char *run_program(char *const *command);

#endif
