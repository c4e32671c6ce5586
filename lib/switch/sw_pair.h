/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs (switch/pair.h), as the switch knows them: which clients have one, what each of them has
 * been told, and how many QPs use it. A pair comes when two QPs have registered each other as
 * peers. It ends when no such QPs are left, when one of its clients ends, or when one of them says
 * that it failed.
 *
 * Each client is told to map its own part. When both have done so, each is told to map the other
 * one's part. At the end each is told to unmap both. A client is told of the next event when it has
 * done what the one before asked for.
 *
 * Control path, by thread 0, with the locks of all threads.
 */
#ifndef ROCADE_SWITCH_SW_PAIR_H
#define ROCADE_SWITCH_SW_PAIR_H

#include "switch/proto.h"
#include "switch/sw.h"

/* One of the two clients, and how much it knows of the pair. */
struct sw_pair_side {
	TAILQ_ENTRY(sw_pair_side) link; /* in client->pairs */
	struct sw_pair *pair;
	struct sw_client *client; /* NULL: it has ended, or knows the end of the pair */
	uint32_t partner;         /* id of the other client */
	uint32_t told;            /* enum sw_pair_event, not acknowledged; 0: none */
	uint32_t done;            /* the event acknowledged last; 0: none */
};

struct sw_pair {
	struct sw_pair_side sides[2];
	struct pair_geom geom;
	uint32_t uses; /* QPs that hold it */
	bool ended;
	void *memory; /* of the callbacks */
};

/* The memory of the pairs. Without it there are no pairs. */
struct sw_pair_ops {
	/* Creates both parts, and charges them to the clients' accounts. Returns 0 or -errno. */
	int (*create)(struct sw_pair *pair);
	/* The client of this side has mapped its own part: checks that it is whole, and that it is
	 * sealed against further writers. Returns 0 or -errno. */
	int (*check)(struct sw_pair *pair, unsigned side);
	/* Both clients have mapped all they need: descriptors are not needed any more. */
	void (*settle)(struct sw_pair *pair);
	/* The client of this side has unmapped its memory, or has ended. */
	void (*leave)(struct sw_pair *pair, unsigned side);
	/* No client has the pair. */
	void (*destroy)(struct sw_pair *pair);
};

static inline struct sw_pair_side *
sw_pair_other(struct sw_pair_side *side)
{
	return &side->pair->sides[side == &side->pair->sides[0]];
}

static inline unsigned
sw_pair_side_index(const struct sw_pair_side *side)
{
	return side == &side->pair->sides[1];
}

/* Returns whether two clients may have a pair. */
bool sw_pair_possible(const struct sw_client *a, const struct sw_client *b);

/* Called by sw_qp.c: two QPs have registered each other. */
void sw_pair_connected(struct sw_qp *a, struct sw_qp *b);
/* The QP has no local peer any more. */
void sw_pair_disconnected(struct sw_qp *qp);

/* Called by proto.c: the client has done what the event of the request asked for. Fills in the
 * next event. Returns 0; EINVAL: it was not told of that event; EALREADY: it has not acknowledged the
 * last one, which had descriptors. */
int sw_pair_serve(
	struct sw_client *c, const struct sw_request *req, struct sw_reply *reply);

/* Called by the daemon: the side of the event in a reply, for its memory. */
struct sw_pair_side *sw_pair_side_find(struct sw_client *c, uint32_t partner);

/* Called by sw.c: the client ends. */
void sw_pair_forget(struct sw_client *c);

/* Called by the daemon, without a lock: the limits of clients have changed. If clients may have no
 * pairs any more, those that they have end. */
void sw_pair_limits_changed(struct sw *sw);

/* Called by sw_dump.c and sw.c: has the clients whose packets another one dumps send them by the
 * daemon. */
void sw_pair_dumps_changed(struct sw *sw);

#endif
