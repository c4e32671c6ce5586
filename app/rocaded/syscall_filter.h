/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls that the daemon may make once it has started. The kernel kills it for any
 * other one. */
#ifndef ROCADED_SYSCALL_FILTER_H
#define ROCADED_SYSCALL_FILTER_H

#include <stdbool.h>

#include <common/options.h>

enum filter_mode {
	FILTER_KILL,
	FILTER_LOG, /* the kernel only logs other calls: seccomp(2), SECCOMP_RET_LOG */
	FILTER_OFF
};

/* False: this program was built without libseccomp. */
extern const bool filter_built;

/* Installs the filter in all threads, for ever. port: the daemon has a DPDK port. Returns 0, or
 * -1 with an error. */
int filter_install(bool port, enum filter_mode mode, char err[ERR_MAX]);

#endif
