/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#ifndef ROCADE_ETHDEV_ETHDEV_FAIL_H
#define ROCADE_ETHDEV_ETHDEV_FAIL_H

#include <stdio.h>

/* Writes the error text, cut to size, and is ret. */
#define ethdev_fail(text, size, ret, ...) (snprintf(text, size, __VA_ARGS__), (ret))

#endif
