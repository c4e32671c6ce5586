/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a loop, of which one is impaired, and numbered frames. */
#ifndef ROCADE_TEST_IMPAIR_FIXTURE_H
#define ROCADE_TEST_IMPAIR_FIXTURE_H

#include "port/impair.h"

#define RING 256
#define FRAMES 20000
#define LEN 64

/* End 1 is the impaired one. arrived[i]: number of copies of frame i. */
struct impair_fixture {
	struct port port[2];
	struct port_queue inner, outer;
	struct impair *im;
	struct impair_stats stats;
	unsigned arrived[FRAMES];
	uint32_t order[2 * FRAMES]; /* numbers in the order of arrival */
	unsigned count;
	unsigned corrupt_seen;
	uint64_t rand;
	uint32_t bad_at; /* offset of the wrong byte in the last corrupted frame */
};

/* All impairments at once. */
static inline struct impair_conf
conf_all_impairments(uint64_t seed)
{
	return (struct impair_conf){.loss_ppm = 200000,
		.duplicate_ppm = 300000,
		.reorder_ppm = 300000,
		.corrupt_ppm = 100000,
		.seed = seed};
}

/* conf: for frames that end 1 receives. */
void fixture_open(struct impair_fixture *ctx, const struct impair_conf *conf);
/* Proves that no buffer is missing from the pools. */
void fixture_close(struct impair_fixture *ctx, unsigned free_before[2]);
unsigned pool_free(struct port *port);
void numbered_frame_fill(struct pkt *pkt, uint32_t number);
/* Counts received frames. Each has one wrong bit at most. */
void frames_count(struct impair_fixture *ctx, const struct pkt *pkts, unsigned n);

#endif
