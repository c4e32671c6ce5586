/* SPDX-License-Identifier: BSD-3-Clause */
/* The user that the daemon becomes, and the capabilities that it gives up. */
#ifndef ROCADED_PRIVILEGES_H
#define ROCADED_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

#include <common/options.h>

struct daemon_user {
	bool wanted; /* false: the daemon stays the user that has started it */
	uid_t uid;
	gid_t gid;
	char name[64]; /* empty: no entry in the database of users */
};

/* Finds "USER" or "USER:GROUP", names or numbers. text NULL: no user is wanted. Asks the
 * system's databases, which the system call filter forbids later. Returns 0, or -1 with an
 * error. */
int daemon_user_find(const char *text, struct daemon_user *user, char err[ERR_MAX]);

/* Becomes the user, and gives up all capabilities for ever, in every thread of the process.
 * Returns 0, or -1 with an error: the process is then no longer fit for use. */
int privileges_drop(const struct daemon_user *user, char err[ERR_MAX]);

#endif
