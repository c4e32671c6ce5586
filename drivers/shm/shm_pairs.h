/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairs of a client (switch/pair.h): rings that it shares with its partners, the other
 * clients of the daemon with which its QPs are connected. A QP sends by the pair as soon as the
 * pair is there, the QP's peer has said that it accepts its packets, and the receiver can see all
 * that the QP has sent by the daemon. Until then, and when its pair has ended, it sends by the
 * daemon.
 *
 * A client takes from a pair only packets to QPs that are connected with a QP of that partner.
 * It copies a packet into memory of its own first, or the headers of a long packet, and parses and
 * checks the copy. The slot of a long packet is the partner's again when the packet is released.
 *
 * Unless it says otherwise, a call is made with the engine lock held.
 */
#ifndef ROCADE_SHM_SHM_PAIRS_H
#define ROCADE_SHM_SHM_PAIRS_H

#include <poll.h>
#include <pthread.h>

#include "base/answer_wait.h"
#include "base/futex.h"
#include "switch/pair.h"
#include "wire/pkt.h"

#define PAIR_RX_BUFFERS 128 /* packets that the engine may hold at a time */
#define PAIR_LONG 1024      /* bytes of a packet that is shown at once */
/* The partner is awake but has taken nothing for this long: its application is busy elsewhere,
 * and its progress thread is woken to take over. The application may also wait for a core, for which
 * the thread would be one more to wait: each time it lasts twice as long, up to a millisecond, and
 * becomes shorter again while the partner takes packets in time. */
#define PAIR_LAG_NS (50 * NS_PER_US)
#define PAIR_LAG_LAST_NS NS_PER_MS
#define PAIR_LAG_DECAY 48
/* A full ring stops the engine for at most this long: less than ENGINE_STALL_NS. After that the
 * packets for this partner are dropped until it has taken half a ring. */
#define PAIR_FULL_NS (200 * NS_PER_MS)

struct shm_pair {
	struct pair_part *own;        /* written by this client; NULL: there is no pair */
	const struct pair_part *peer; /* NULL: it cannot be used yet */
	uint32_t partner;             /* the daemon's number of that client */
	uint32_t prod;                /* packets sent */
	uint32_t shown;               /* of these the partner can see */
	uint32_t cons_seen;           /* of these the partner has taken */
	uint32_t cons;                /* packets taken from the partner */
	uint32_t ready;               /* packets that it has shown beyond those */
	uint32_t lent;  /* packets taken whose payload the engine reads in their slots */
	uint32_t woken; /* the partner's sleep that was ended last (base/asleep.h) */
	int wake_fd; /* the connection with the partner (enum pair_wake); -1: it has ended */
	/* When cons_seen last changed, or the first packet after it was sent. */
	uint64_t taken_ns;
	uint64_t checked_ns; /* when cons_seen was last compared with that */
	uint64_t lag_ns;     /* PAIR_LAG_NS to PAIR_LAG_LAST_NS */
	uint32_t line_ns;    /* mean of shm/line_time.h */
	/* When its full ring began to stop the engine, set anew once it has taken half a ring since,
	 * and cons_seen then. */
	uint64_t full_ns;
	uint32_t full_cons;
	bool lag_told;     /* the partner was woken because it has taken nothing */
	bool full;         /* its ring was full for too long: packets are dropped */
	bool spoiled;      /* its index is invalid: nothing more is sent */
	bool spoiled_told; /* to the daemon */
	/* A QP is to be announced, and there was no room. */
	bool announce_waits;
};

enum pair_qp_state {
	PAIR_QP_DAEMON,   /* the peer may not accept packets of the pair yet */
	PAIR_QP_ACCEPTED, /* it does */
	PAIR_QP_DIRECT,   /* and the QP sends by the pair */
};

/* Where the packets of a QP go: by QPN & mask. */
struct pair_qp {
	uint32_t qpn;
	uint32_t partner; /* the client that has the registered peer; 0: none */
	uint32_t peer_qpn;
	/* Index behind the QP's last packet in the ring to the daemon, and in that of the pair. */
	uint32_t last_tx, last_pair_tx;
	/* A timer has expired: what was asked of the daemon, and how far it is (switch/sw_ask.h). */
	uint64_t ask_since_ns;
	uint64_t ask_again_ns; /* the reply may be lost from then on */
	uint32_t ask_mark;
	uint16_t ask_number;
	uint8_t ask_step;
	bool ask_replied;
	uint8_t pair;     /* index of the partner's pair + 1; 0: there is none */
	uint8_t state;    /* enum pair_qp_state */
	bool registering; /* the daemon's answer is not known yet */
	bool long_packets; /* its last packet was long: the next ones are placed (pairs_tx_place()) */
	bool announce; /* the peer is to be told that its packets are accepted */
};

struct shm_pairs {
	uint32_t count; /* of the first ones some are in use, none behind these is */
	struct shm_pair all[PAIRS_MAX];
	struct pair_geom geom;
	size_t slot_size;
	struct pair_qp *qps;
	uint32_t mask;
	uint32_t next; /* the pair that is received from first */
	/* Packets of the daemon in the last bursts, which took no others. */
	uint32_t starved;
	bool announce_due; /* a QP is to be announced, and there is a pair for it */
	bool spoiled;      /* a pair is, and the daemon may not know */
	bool off;          /* ROCADE_OFF=pairs */
	bool place_off; /* ROCADE_OFF=pair-place: long packets are copied, at both ends */
	uint8_t *buffers; /* PAIR_RX_BUFFERS of geom.buf_size */
	uint8_t free[PAIR_RX_BUFFERS];
	uint32_t free_count;
	/* By buffer: the pair whose slot has the packet's payload; NULL: the buffer has it. */
	struct shm_pair *lender[PAIR_RX_BUFFERS];
	/* Held while an event of a pair is served, from before its descriptors come: fork() waits until what
	 * is mapped is in the set, or unmapped. */
	pthread_mutex_t serve_lock;
	/* Held to change which pairs there are, and by threads that are about to sleep, which do not
	 * hold the engine lock. */
	pthread_mutex_t sleep_lock;
	/* A futex: changes when a thread that sleeps has to look which pairs there are. */
	uint32_t changes;
};

struct shm;

/* shm_pairs.c, for shm_open.c and shm_port.c. */

/* Reads the environment; allocates nothing. */
void pairs_init(struct shm_pairs *p);
/* Before the engine is there. qpns: of the daemon. Returns 0, -EPROTO or -ENOMEM. */
int pairs_start(struct shm_pairs *p, const struct region_geom *geom, uint32_t qpns);
/* Unmaps everything. */
void pairs_fini(struct shm_pairs *p);

/* Without the engine lock: the QP is about to register a peer, and has registered it. partner:
 * 0 if that failed, or none. accepted: the peer has registered this QP. */
void pairs_register_begin(struct shm *shm, uint32_t qpn);
void pairs_register_end(struct shm *shm, uint32_t qpn, uint32_t peer_qpn,
	uint32_t partner, bool accepted);
/* Without the engine lock: the QP has no peer any more. */
void pairs_unregister(struct shm *shm, uint32_t qpn);

/* Without the engine lock, by the progress thread: does what the daemon asks for. */
void pairs_serve(struct shm *shm);
/* Without the engine lock: shows the partners whether this client sleeps, and how. */
void pairs_show_asleep(struct shm *shm);
/* Without the engine lock: fills in the words that partners change to wake a thread that sleeps
 * on them. Returns how many. */
unsigned pairs_futex_words(struct shm *shm, struct futex_word *words, unsigned max);
/* Without the engine lock, by the progress thread: fills in the descriptors by which partners wake it.
 * Returns how many, up to PAIRS_MAX. */
unsigned pairs_poll_fds(const struct shm *shm, struct pollfd *fds);
/* The same, after poll(2): reads what the partners have written. Returns whether one of them says that
 * its packets are not taken. */
bool pairs_wakes_read(struct shm *shm, const struct pollfd *fds, unsigned count);
/* In a child of fork(): memory of its own takes the place of what it shares. */
void pairs_unshare(struct shm_pairs *p, void (*unshare)(void *mem, size_t size));

/* pair_tx.c and pair_rx.c, for shm_port.c. */

/* Notes how many packets the partners have shown. To be called before the ring of the daemon is
 * read: what a QP has sent by the daemon before it sent by its pair is found there then. */
void pairs_peek(struct shm *shm);
/* Takes up to n of these. owner: flag of such packets in pkt.owner. Returns how many. */
unsigned pairs_rx(struct shm *shm, struct pkt *pkts, unsigned n, uint64_t owner);
/* Takes the buffer of such a packet back. */
void pairs_rx_release(struct shm_pairs *p, uint8_t index);
/* In each pass: wakes partners that lag, announces what QPs accept. */
void pairs_check(struct shm *shm);
/* Returns whether a partner has shown packets. */
bool pairs_have_packets(const struct shm *shm);
/* Returns when pairs_check() has to look after a partner that has not taken its packets. */
uint64_t pairs_deadline(const struct shm *shm);

/* Returns the pair by which a packet of the QP is to be sent, or NULL: by the daemon. */
struct shm_pair *pairs_route(struct shm *shm, uint32_t qpn);
/* The packet that was put into the ring to the daemon before this index is the QP's. */
void pairs_note_daemon_tx(struct shm *shm, uint32_t qpn, uint32_t index);
/* As port_ops.tx_place and tx_unplace: the frames become the next slots of the QP's pair, so that long
 * packets are built where the partner reads them. Packets that do not leave by the pair are moved to
 * their buffers, too. */
unsigned pairs_tx_place(void *queue, uint32_t qpn, struct pkt *pkts, unsigned n);
void pairs_tx_unplace(void *queue, struct pkt *pkts, unsigned n);
/* Copies a packet into the ring, unless it is placed there. Returns false if the partner has to take some
 * first. */
bool pair_tx(struct shm *shm, struct shm_pair *pair, uint32_t qpn, const struct pkt *pkt);
/* Tells the peer of the QP, which has a pair, that its packets are accepted: now, or when the ring has
 * room. */
void pair_qp_announce(struct shm *shm, struct pair_qp *q);
/* After some packets: shows them, and wakes the partner if it sleeps. */
void pair_tx_done(struct shm *shm, struct shm_pair *pair);
/* Parts of port_ops.tx_waits. Returns whether the partner has not answered all that the QP has sent by this
 * pair. */
bool pair_is_unanswered(struct shm *shm, struct shm_pair *pair, const struct pair_qp *q,
	struct answer_wait *wait);
/* Returns whether the partner has shown packets that may have come before the last ones that it has
 * answered. */
bool pair_answer_is_shown(
	const struct shm *shm, const struct shm_pair *pair, struct answer_wait *wait);
/* As port_ops.rx_answered. */
void pairs_rx_answered(const struct shm_pairs *p);

#endif
