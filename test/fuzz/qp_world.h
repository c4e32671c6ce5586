/* SPDX-License-Identifier: BSD-3-Clause */
/* What the `qp` target plays with: two QPs of one service, and memory in zones. */
#ifndef ROCADE_TEST_QP_WORLD_H
#define ROCADE_TEST_QP_WORLD_H

#include "qp_pair.h"

#include "fuzz.h"

#define ZONE 8192
#define SOURCE_AT 0     /* sends are made of it: nobody writes it */
#define LANDING_AT ZONE /* receives, READs and atomics land here */
#define GUARD_AT (2 * ZONE)
#define GRANT_AT (3 * ZONE) /* what the other host's rkey is for */
#define END_GUARD_AT (4 * ZONE)
#define MEM_BYTES (5 * ZONE)

/* A step is eight bytes, so that one can be put in or taken out; a frame's bytes follow.
 */
#define STEP_LEN 8
struct step {
	uint8_t op; /* its top bit: which host */
	uint8_t a, b, c;
	uint16_t x, y;
};

struct world {
	struct pair pair;
	uint64_t wr_id;
	bool granted[2]; /* the key of the granted zone is live */
};

void
world_init(struct world *w, const struct step *conf);
/* Takes everything back and proves that nothing is left. */
void
world_fini(struct world *w);
/* Nothing stands where nobody may write. */
void
world_check(const struct world *w);

/* The granted zone gets a key, or loses it. */
void
world_grant(struct world *w, struct host *h);
void
world_revoke(struct world *w, struct host *h);

static inline bool
world_granted(const struct world *w, const struct host *h)
{
	return w->granted[h == &w->pair.b];
}

/* As the engine pulls; no READ response says what was not granted. */
void
world_pull(struct host *h, unsigned n);
void
world_poll(struct host *h);
void
world_step(struct world *w, const struct step *s, struct input *in);

#endif
