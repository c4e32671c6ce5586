/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes of librocade-faults.so to files of the program: they raise no signal in it. */
#ifndef ROCADE_PRELOAD_FAULT_WRITE_H
#define ROCADE_PRELOAD_FAULT_WRITE_H

#include <signal.h>

struct fault_write_mask {
	sigset_t before; /* the mask of this thread */
	sigset_t added;  /* signals that the program does not wait for already */
};

/* Blocks the signals that a write raises in this thread. */
void fault_write_begin(struct fault_write_mask *m);
/* Takes those that were raised. */
void fault_write_end(const struct fault_write_mask *m);

/* Prints an error, once it is known that the process has faults. */
void fault_report(const char *what);

#endif
