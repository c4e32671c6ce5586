/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allreduce SECONDS SIZE...: the time of MPI_Allreduce() of doubles, for each size in
 * bytes for about that many seconds. Rank 0 prints "SIZE bytes: MICROSECONDS us", then
 * "measured", and reads one line before all ranks end: until then their counters can be
 * read. Exits with 1 if a sum is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST 8 /* operations to warm up, and to choose the number of others */
#define SIZE_MAX_B (64 << 20)

static int rank, ranks;

static void
reduce(const double *in, double *out, int count)
{
	MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double
timed(const double *in, double *out, int count, long n)
{
	double begin, mine, longest;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (long i = 0; i < n; i++)
		reduce(in, out, count);
	mine = MPI_Wtime() - begin;
	MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return longest / (double)n;
}

static void
size_measure(int bytes, double seconds)
{
	int count = bytes / (int)sizeof(double);
	double *in = malloc((size_t)bytes), *out = malloc((size_t)bytes), each;
	const double want = ranks * (ranks + 1) / 2;

	if (in == NULL || out == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < count; i++)
		in[i] = rank + 1;
	(void)timed(in, out, count, FIRST);
	each = timed(in, out, count, FIRST);
	/* All ranks have the same longest time, so the same number. */
	each = timed(in, out, count, 1 + (long)(seconds / (each + 1e-7)));
	for (int i = 0; i < count; i++) {
		if (out[i] != want) {
			fprintf(stderr, "rank %d: sum %d of %d bytes is %g, not %g\n",
				rank, i, bytes, out[i], want);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (rank == 0)
		printf("%d bytes: %.3f us\n", bytes, each * 1e6);
	free(in);
	free(out);
}

int
main(int argc, char **argv)
{
	char line[8];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 2; i < argc; i++) {
		int bytes = atoi(argv[i]);

		if (bytes < (int)sizeof(double) || bytes > SIZE_MAX_B ||
			bytes % (int)sizeof(double) != 0) {
			fprintf(stderr,
				"allreduce: size '%s': 8 to %d, a multiple of 8\n",
				argv[i], SIZE_MAX_B);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		size_measure(bytes, atof(argv[1]));
	}
	if (rank == 0) {
		printf("measured\n");
		fflush(stdout);
		(void)!fgets(line, sizeof(line), stdin);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
