/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that verifies every byte it receives: all-reduce, all-to-all, and
 * messages of 1 byte to 8 MiB around the ring of ranks. Prints the least number of bytes
 * that each rank has sent to another. Exits with 1 if a byte is wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20
#define WORDS 4096
#define BLOCK 2048 /* words for each rank */
#define LARGEST (8u << 20)

static int rank, ranks;
static uint64_t sent;

static void
require(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rank %d of %d: wrong: %s\n", rank, ranks, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint32_t
word_of(unsigned from, unsigned to, unsigned round, unsigned i)
{
	uint32_t x = (from << 24 ^ to << 16 ^ round << 8) + i * 2654435761u;

	return x ^ x >> 15;
}

static void
all_reduce(unsigned round)
{
	static uint64_t in[WORDS], out[WORDS];

	for (unsigned i = 0; i < WORDS; i++)
		in[i] = word_of((unsigned)rank, 0, round, i);
	MPI_Allreduce(in, out, WORDS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t want = 0;

		for (int r = 0; r < ranks; r++)
			want += word_of((unsigned)r, 0, round, i);
		require(out[i] == want, "all reduce");
	}
	sent += sizeof(in);
}

static void
all_to_all(unsigned round, uint32_t *in, uint32_t *out)
{
	for (int r = 0; r < ranks; r++) {
		for (unsigned i = 0; i < BLOCK; i++)
			in[(unsigned)r * BLOCK + i] =
				word_of((unsigned)rank, (unsigned)r, round, i);
	}
	MPI_Alltoall(in, BLOCK, MPI_UINT32_T, out, BLOCK, MPI_UINT32_T, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++) {
		for (unsigned i = 0; i < BLOCK; i++)
			require(out[(unsigned)r * BLOCK + i] ==
					word_of((unsigned)r, (unsigned)rank, round, i),
				"all to all");
	}
	sent += (uint64_t)(ranks - 1) * BLOCK * sizeof(*in);
}

/* Sends to the next rank and receives from the previous one. */
static void
ring_exchange(unsigned bytes, unsigned char *in, unsigned char *out)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Request requests[2];
	MPI_Status statuses[2];

	for (unsigned i = 0; i < bytes; i++) {
		in[i] = (unsigned char)word_of((unsigned)rank, (unsigned)next, bytes, i);
		out[i] = 0;
	}
	MPI_Irecv(out, (int)bytes, MPI_BYTE, before, 7, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(in, (int)bytes, MPI_BYTE, next, 7, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, statuses);
	for (unsigned i = 0; i < bytes; i++)
		require(out[i] == (unsigned char)word_of(
					  (unsigned)before, (unsigned)rank, bytes, i),
			"a message");
	sent += bytes;
}

int
main(int argc, char **argv)
{
	unsigned char *bytes[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	require(ranks > 1, "fewer than two ranks");
	for (unsigned i = 0; i < 2; i++) {
		bytes[i] = malloc(LARGEST);
		require(bytes[i] != NULL, "no memory");
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		all_reduce(round);
		all_to_all(round, (uint32_t *)bytes[0], (uint32_t *)bytes[1]);
	}
	for (unsigned size = 1; size <= LARGEST; size *= 8)
		ring_exchange(size, bytes[0], bytes[1]);
	ring_exchange(LARGEST, bytes[0], bytes[1]);
	if (rank == 0)
		printf("%d ranks, %llu bytes each\n", ranks, (unsigned long long)sent);
	MPI_Finalize();
	return 0;
}
