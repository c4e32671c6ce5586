/* SPDX-License-Identifier: BSD-3-Clause */
/* A duplicate of standard error, for what a library prints at the end of a program: some programs close their standard
 * error by then, some all descriptors that they do not know, and some have another file under the number. */
#ifndef ROCADE_BASE_ERROR_FD_H
#define ROCADE_BASE_ERROR_FD_H

/* Makes the duplicate, unless this process has one or has tried. In a child of fork(2): only if standard error is still
 * the file of the parent. Any thread. */
void error_keep(void);
/* Returns the duplicate, or -1 if the program has closed it, or has opened another file under its number. */
int error_fd(void);
/* For a child of fork(2), right after it: closes the duplicate, because the child may live on as a daemon, while the
 * parent's caller waits for the end of a pipe. */
void error_leave(void);

#endif
