/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "numbers.h"

double
jain_index(const double *values, unsigned n)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += values[i];
		squares += values[i] * values[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
percentile(double *values, size_t n, double part)
{
	if (n == 0)
		return NAN;
	qsort(values, n, sizeof(*values), compare);
	return values[(size_t)(part * (double)(n - 1))];
}
