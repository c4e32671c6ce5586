/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that this one has started, and those that they have. It has to be their subreaper (prctl(2)): else those
 * whose parent has ended are not found. */
#ifndef FAULTS_PROCESS_TREE_H
#define FAULTS_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

struct tree_process {
	pid_t pid, parent;
	char name[16]; /* as /proc/PID/comm has it, in which a newline is the end */
};

/* Zeros: none was read yet. */
struct process_tree {
	struct tree_process *all;
	unsigned count, room; /* room: for all processes of the host */
};

/* Those that run now, by PID. */
void process_tree_read(struct process_tree *t);
void process_tree_free(struct process_tree *t);
/* Copies a variable of the environment with which a process was started. Returns false if it has none. */
bool process_variable(pid_t pid, const char *name, char *out, size_t size);
/* Ends all by SIGTERM, daemons of Rocade last, and by SIGKILL those that are still there after a while. The tree is
 * what has not ended even so. */
void process_tree_end(struct process_tree *t);

#endif
