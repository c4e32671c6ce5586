/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_pass SECONDS BYTES: how long one pass takes that copies a payload of BYTES and
 * computes its CRC (icrc_copy()), as a sender does from the application's memory into a
 * frame, and a receiver from a frame into that memory. The buffers are as cold as in
 * `rocade-perf --mode write --size 1048576`: the memory is 1 MiB, taken in order, and the
 * frames are those of a burst, used again and again. Prints JSON: the median times of a
 * pass in each direction.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/icrc_copy.h"

#define MEMORY (1u << 20)
#define FRAMES 32u        /* a burst of DPDK */
#define FRAME_ROOM 8192u  /* bsize of the port in tools/bench/runners.py */
#define FRAME_HEADERS 54u /* Ethernet, IPv4, UDP, BTH: where the payload begins */
#define BYTES_MIN ICRC_COPY_MIN
#define BYTES_MAX (FRAME_ROOM - FRAME_HEADERS)
#define SECONDS_MAX 60.0
#define ROUNDS_MAX 65536u

struct buffers {
	uint8_t *memory, *frames;
	size_t bytes;
	unsigned passes; /* of a round: the whole memory once */
};

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Returns the time of a pass. *crc: the sum of all, so that no pass can be left out. */
static double
round_send(const struct buffers *b, uint32_t *crc)
{
	double begin = now_ns();

	for (unsigned i = 0; i < b->passes; i++)
		*crc = icrc_copy((struct icrc_sum){.crc = *crc}, 0,
			b->frames + i % FRAMES * FRAME_ROOM + FRAME_HEADERS,
			b->memory + i * b->bytes, b->bytes);
	return (now_ns() - begin) / b->passes;
}

static double
round_receive(const struct buffers *b, uint32_t *crc)
{
	double begin = now_ns();

	for (unsigned i = 0; i < b->passes; i++)
		*crc = icrc_copy((struct icrc_sum){.crc = *crc}, 0,
			b->memory + i * b->bytes,
			b->frames + i % FRAMES * FRAME_ROOM + FRAME_HEADERS, b->bytes);
	return (now_ns() - begin) / b->passes;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

static int
usage(void)
{
	fprintf(stderr,
		"usage: copy_pass SECONDS BYTES\n"
		"SECONDS: above 0, at most %.0f; BYTES: %u to %u\n",
		SECONDS_MAX, BYTES_MIN, BYTES_MAX);
	return 2;
}

static int
measure(struct buffers *b, double seconds)
{
	double *send = calloc(ROUNDS_MAX, sizeof(*send));
	double *receive = calloc(ROUNDS_MAX, sizeof(*receive));
	double end = now_ns() + 1e9 * seconds;
	uint32_t crc = 0;
	unsigned n = 0;

	if (send == NULL || receive == NULL) {
		fprintf(stderr, "copy_pass: no memory\n");
		free(send);
		free(receive);
		return 1;
	}
	do {
		send[n] = round_send(b, &crc);
		receive[n] = round_receive(b, &crc);
		n++;
	} while (n < ROUNDS_MAX && now_ns() < end);
	printf("{\"bytes\": %zu, \"one_pass\": %s, \"rounds\": %u, \"crc\": %" PRIu32 ", "
	       "\"send_ns\": %.2f, \"receive_ns\": %.2f}\n",
		b->bytes, b->bytes >= icrc_copy_min ? "true" : "false", n, crc,
		median(send, n), median(receive, n));
	free(send);
	free(receive);
	return 0;
}

int
main(int argc, char **argv)
{
	double seconds = argc == 3 ? strtod(argv[1], NULL) : 0;
	unsigned long bytes = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct buffers b;
	int rc;

	if (!(seconds > 0 && seconds <= SECONDS_MAX) || bytes < BYTES_MIN ||
		bytes > BYTES_MAX)
		return usage();
	b.bytes = bytes;
	b.passes = (unsigned)(MEMORY / bytes);
	b.memory = aligned_alloc(4096, MEMORY);
	b.frames = aligned_alloc(4096, FRAMES * FRAME_ROOM);
	if (b.memory == NULL || b.frames == NULL) {
		fprintf(stderr, "copy_pass: no memory\n");
		rc = 1;
	} else {
		/* Written, so that each page has memory of its own. */
		memset(b.memory, 0xa5, MEMORY);
		memset(b.frames, 0x5a, FRAMES * FRAME_ROOM);
		rc = measure(&b, seconds);
	}
	free(b.memory);
	free(b.frames);
	return rc;
}
