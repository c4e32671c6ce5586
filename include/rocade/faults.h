/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts of faults (rocade-faults(1)), for the programs of Rocade. Not installed. */
#ifndef ROCADE_FAULTS_H
#define ROCADE_FAULTS_H

#include <stdio.h>

#define ROCADE_FAULTS_WHY 2048 /* bytes */

/* Reads a script. to: NULL, or gets a sentence for each rule. Returns 0, or a positive errno: then why says
 * in which line and column the error is, and what is valid there. */
int rocade_faults_read(const char *path, FILE *to, char why[ROCADE_FAULTS_WHY]);

/* Begins a journal of a run of a program: empties the file, and writes the first line. Returns 0 or a positive errno. */
int rocade_faults_journal_begin(
	const char *path, const char *version, const char *program, const char *seed);

/* If the file is a journal: whether it is of this version and program, and can be replayed. Returns 0, or a positive
 * errno: then why has the difference. */
int rocade_faults_journal_check(const char *path, const char *version,
	const char *program, char why[ROCADE_FAULTS_WHY]);

#endif
