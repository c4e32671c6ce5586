/* SPDX-License-Identifier: BSD-3-Clause */
/* The world of the `qp` target: two QPs of one service, and memory in zones. */
#ifndef ROCADE_TEST_QP_WORLD_H
#define ROCADE_TEST_QP_WORLD_H

#include "qp/hold.h"
#include "qp/read_gap.h"
#include "qp/sack.h"
#include "qp_link.h"

#include "fuzz.h"

#define ZONE 8192
#define SOURCE_AT 0     /* source of sends: must never change */
#define LANDING_AT ZONE /* target of receives, READs and atomics */
#define GUARD_AT (2 * ZONE)
#define GRANT_AT (3 * ZONE) /* covered by the other host's rkey */
#define END_GUARD_AT (4 * ZONE)
#define MEM_BYTES (5 * ZONE)

/* A step has eight bytes, so that one can be inserted or removed. A frame's bytes follow
 * it. */
#define STEP_LEN 8
struct step {
	uint8_t op; /* the top bit selects the host */
	uint8_t a, b, c;
	uint16_t x, y;
};

struct world {
	struct qp_link link;
	uint64_t wr_id;
	bool granted[2]; /* the key of the granted zone is valid */
	/* Of both hosts, if they hold packets: then they use selective acknowledgements. */
	struct hold_arena hold;
	struct txmaps txmaps;
};

void world_init(struct world *w, const struct step *conf);
/* Destroys everything and checks that nothing is left. */
void world_fini(struct world *w);
/* Checks that no other bytes were written. */
void world_check(const struct world *w);

/* Grants the zone (registers a key), or revokes it. */
void world_grant(struct world *w, struct host *h);
void world_revoke(struct world *w, struct host *h);

static inline bool
world_granted(const struct world *w, const struct host *h)
{
	return w->granted[h == &w->link.b];
}

/* Pulls packets like the engine. Checks that READ responses contain only granted
 * bytes. */
void world_pull(struct host *h, unsigned n);
void world_poll(struct host *h);
void world_step(struct world *w, const struct step *s, struct input *in);

#endif
