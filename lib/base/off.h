/* SPDX-License-Identifier: BSD-3-Clause */
/* Mechanisms that the environment of the process turns off: ROCADE_OFF=NAME,... with the names in
 * off.def. Read when a device is opened, so that a program can change it between two of them. */
#ifndef ROCADE_BASE_OFF_H
#define ROCADE_BASE_OFF_H

#include <stdbool.h>
#include <stddef.h>

#define OFF_ENV "ROCADE_OFF"
#define OFF_WHY_MAX 384 /* bytes of the sentence about an invalid entry */

enum off {
#define OFF(which, name) OFF_##which,
#include "base/off.def"
#undef OFF
	OFF_COUNT
};

/* Whether ROCADE_OFF has the name of this mechanism. */
bool is_off(enum off which);

/* Returns 0, or -EINVAL if ROCADE_OFF has an entry that is no name; why gets a sentence then. */
int off_check(char *why, size_t size);

#endif
