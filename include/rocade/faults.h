/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts of faults (rocade-faults(1)), for the programs of Rocade. Not installed. */
#ifndef ROCADE_FAULTS_H
#define ROCADE_FAULTS_H

#include <stdint.h>
#include <stdio.h>

#define ROCADE_FAULTS_WHY 2048    /* bytes */
#define ROCADE_FAULTS_RULES 10000 /* that a script has at most */

/* Reads a script. to: NULL, or gets a sentence for each rule. Returns 0, or a positive errno: then why says
 * in which line and column the error is, and what is valid there. */
int rocade_faults_read(const char *path, FILE *to, char why[ROCADE_FAULTS_WHY]);

/* Begins a journal of a run of a program: empties the file, and writes the first line. Returns 0 or a positive errno. */
int rocade_faults_journal_begin(
	const char *path, const char *version, const char *program, const char *seed);

/* If the file is a journal: whether it is of this version and program, and can be replayed. Returns 0, or a positive
 * errno: then why has the difference. ENOTUNIQ: it is, but several processes have a name of its rules. */
int rocade_faults_journal_check(const char *path, const char *version,
	const char *program, char why[ROCADE_FAULTS_WHY]);

/* Kinds of random scripts, which end with NULL: rocade-faults(1). */
extern const char *const rocade_faults_profiles[];

/* Writes a script whose rules are never applied, so that a process with it counts all that there is to count. */
void rocade_faults_count_all(FILE *to);
/* Writes a script that the seed draws, for what the processes of a run with that script have counted, as its journal says.
 * profile: an index of rocade_faults_profiles. Returns 0, or a positive errno: then why has the reason. */
int rocade_faults_draw(const char *journal, unsigned profile, uint64_t seed, FILE *to,
	char why[ROCADE_FAULTS_WHY]);

#endif
