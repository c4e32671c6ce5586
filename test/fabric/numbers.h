/* SPDX-License-Identifier: BSD-3-Clause */
/* What is computed from samples. */
#ifndef ROCADE_FABRIC_NUMBERS_H
#define ROCADE_FABRIC_NUMBERS_H

#include <stddef.h>

/* Jain's index of n values; 0 for no or only zero values. */
double jain_index(const double *values, unsigned n);
/* Sorts the values. Returns the one at this part of them, NAN if there are none. */
double percentile(double *values, size_t n, double part);

#endif
