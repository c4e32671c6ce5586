/* SPDX-License-Identifier: BSD-3-Clause */
/* A hostile client that has a QP which is connected with one of a victim, so that both form a pair
 * (switch/pair.h). hostile_pair.c has what it needs to behave, hostile_pair_ways.c what it does
 * instead. */
#ifndef ROCADE_TEST_HOSTILE_PAIR_H
#define ROCADE_TEST_HOSTILE_PAIR_H

#include "hostile.h"

#define MEETS 8      /* QPs that are connected, as in partner.c */
#define FIRST_PSN 77 /* of all QPs of partner.c */

/* Other QPs of the victim, and of its friend: see partner.c. */
enum target {
	TARGET_CONNECTED,
	TARGET_UNCONNECTED,
	TARGET_UD,
	TARGET_FRIEND,
	TARGETS,
};

struct partner {
	struct me me;
	/* Its QPs, and those of the victim that are connected with them. */
	uint32_t qpn[MEETS], met[MEETS];
	uint32_t target[TARGETS];
	uint32_t id; /* of the victim, as a client */
	struct pair_geom geom;
	struct pair_part *own;
	const struct pair_part *peer;
	int own_fd, peer_fd; /* -1: none */
	int wake_fd;         /* the connection with the victim; -1: none */
	uint32_t payload;    /* bytes of the packets that it builds */
	uint32_t put;        /* packets put into the own part */
	uint32_t taken;      /* packets seen in the victim's */
};

/* Each way is a row of this table. */
struct pair_way {
	const char *name;
	/* If not NULL: does what the event SW_PAIR_OWN asks for, in place of pair_own_map(). */
	int (*own)(struct partner *n);
	/* Returns the exit status. Called when the pair can be used; with `own`: in any case. */
	int (*run)(struct partner *n);
};
extern const struct pair_way pair_ways[];
extern const unsigned pair_way_count;

/* Maps the own part and allocates its pages. Returns 0 or -1. */
int pair_own_fill(struct partner *n);

/* Seals it against further writers. Returns 0 or -1. */
int pair_own_seal(const struct partner *n);

/* Does both. */
int pair_own_map(struct partner *n);

/* Sends SW_PAIR: event and id are acknowledged. Closes what comes along. Returns as session_call(). */
int pair_tell(struct partner *n, uint32_t event, uint32_t id);

/* Returns whether neither the input nor the time has ended. */
bool pair_goes_on(void);

/* Returns the slot of this packet, counted from 1. */
struct pair_slot *pair_slot_at(struct partner *n, uint32_t number);

/* Waits for room in the own part. Returns the next slot, or NULL when the time is over. */
struct pair_slot *pair_slot_wait(struct partner *n);

/* Gives the slot of pair_slot_wait() to the victim. */
void pair_slot_give(
	struct partner *n, struct pair_slot *slot, uint16_t kind, uint16_t len);

/* Counts in n->taken what the victim has put into its part. */
void pair_look(struct partner *n);

/* And takes it, without reading. */
void pair_take(struct partner *n);

/* Waits until the victim has filled its part. Returns whether it has. */
bool pair_fill(struct partner *n);

/* Writes a valid packet with a valid ICRC. psn: of a datagram its Q_Key. Returns its length. */
uint16_t pair_packet_build(
	struct partner *n, uint8_t *to, uint32_t dest, uint8_t opcode, uint32_t psn);

/* Builds such a packet in the next slot and gives it to the victim. Returns whether there was time for
 * it. */
bool pair_packet_put(struct partner *n, uint32_t dest, uint8_t opcode, uint32_t psn);
/* Repeats a request, and so has the victim send an answer, whether or not it may send requests of its
 * own. Returns whether the test goes on. */
bool pair_answer_ask(struct partner *n);

#endif
