/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Congestion control of a peer (docs/protocol.md 17.2): how many packets may be in flight
 * to it. The rules are those of Swift (Kumar et al., 2020), with round trips, losses and
 * CNPs as signals. Pure functions of this state: the caller (congestion.c) passes the time
 * and puts the result, cc_window(), into effect.
 *
 * The delay that decides is the lower bound of a round trip: without the time that the
 * response waited for the engine's poll. So a slow turn of the own poll loop is not taken
 * for a queue in the network. Nothing here uses floating point.
 */
#ifndef ROCADE_QP_CC_H
#define ROCADE_QP_CC_H

#include "base/common.h"

#define CC_SHIFT 8 /* windows are in packets << CC_SHIFT */
#define CC_ONE (1u << CC_SHIFT)
#define CC_CAP_MAX (1u << 20)       /* packets */
#define CC_MIN (CC_ONE / 10)        /* least window: a packet in ten round trips */
#define CC_IDLE_NS (10 * NS_PER_MS) /* after it the window is the first one again */
#define CC_SRTT_NS (50 * NS_PER_US) /* assumed before the first round trip */
#define CC_GAP_MAX_NS NS_PER_MS     /* no longer wait between two packets */
#define CC_HISTORY 4096             /* packets of which the lost part is known */
#define CC_LEVELS 17                /* delay targets: each 1.41 times the one before */
#define CC_FEW 4                    /* unsteady: delays of which the least one counts */
#define CC_CALM 8 /* round trips without a queue, after which the window grows faster */
/* Bytes of a packet besides its payload, about, and of the longest one. */
#define CC_HEADERS 64
#define CC_LONGEST (4096 + CC_HEADERS)
#define CC_QUEUED (13 * CC_LONGEST) /* bytes in queues from which on the window shrinks */
#define CC_QUEUED_CUT 32            /* then by this part of 1024 */
#define CC_LONG_NS NS_PER_SEC       /* of long round trips: then the path has them */

/* Of an engine's peers. */
struct cc_conf {
	bool on;
	/* No delay shows a queue, because most of a round trip is the wait of a thread for a
	 * core: only losses and CNPs cut the window. Round trips decide which losses do, and
	 * how fast the window grows. Without effect if target_us is set. */
	bool delay_unknown;
	/* The link is memory of this host, whose full rings lose nothing: a loss is no sign of a
	 * queue, however long round trips are. With delay_unknown only. */
	bool memory_link;
	uint16_t target_us; /* lowest delay target; 0: CC_TARGET_US */
	uint16_t window;    /* first window, packets; 0: CC_WINDOW */
	uint16_t loss;      /* lost packets of 1000 that are no congestion; 0: CC_LOSS */
};
#define CC_TARGET_US 25
#define CC_WINDOW 8
#define CC_LOSS 20

#define CC_TARGET_US_MAX 1000
#define CC_WINDOW_MAX 65535
#define CC_LOSS_MAX 1000

/* Reads "off", or "swift" with target=US, window=PACKETS and loss=PERMILLE behind it, each after a
 * comma. Returns 0, or -EINVAL and why, a sentence that begins with the name; *out is unchanged then.
 * delay_unknown and memory_link stay as they are. */
int cc_text_read(
	const char *name, const char *text, struct cc_conf *out, char *why, size_t size);
/* The same with ROCADE_CC, if it is set. */
int cc_env_read(struct cc_conf *out, char *why, size_t size);

/* Why the window was cut. */
enum cc_cut {
	CC_CUT_NONE,
	CC_CUT_DELAY,
	CC_CUT_LOSS,
	CC_CUT_CNP,
};

struct cc {
	uint32_t cwnd;     /* packets << CC_SHIFT; 0: there is no control */
	uint32_t cap;      /* likewise */
	uint32_t first;    /* likewise: the first window */
	uint32_t before;   /* likewise: cwnd before probes cut it; 0: they did not */
	uint32_t base_ns;  /* of the delay targets */
	uint32_t delay_ns; /* the last one */
	uint32_t srtt_ns;  /* smoothed round trip; 0: no sample yet */
	uint32_t path_ns;  /* least round trip since the last check */
	/* delay_unknown: least round trip lately; it rises by a 32nd in a round trip at most */
	uint32_t recent_ns;
	uint32_t packet; /* bytes of a packet, smoothed */
	uint32_t acked;  /* packets; halved with lost, see CC_HISTORY */
	uint32_t lost;   /* << CC_SHIFT */
	uint16_t loss;   /* lost packets of 1000 that are no congestion */
	/* part of the round trips with a CNP, of 1024; 0: none lately */
	uint16_t cnp_part;
	bool slow_start : 1;
	bool cnp_seen : 1; /* in this round trip */
	bool climbing : 1;
	bool lossy : 1; /* a packet was lost since watch_at */
	bool checking : 1;
	bool check_due : 1;     /* at check_at */
	bool unsteady : 1;      /* delays differ too much for those of a queue */
	bool delay_unknown : 1; /* see struct cc_conf */
	bool judges_losses : 1; /* delay_unknown, and queues lose packets */
	bool exceeded : 1;      /* send_at holds also for a window of a packet or more */
	/* unsteady: number of samples, of which few_ns is the least delay and few_packets
	 * the sum of the packets */
	uint8_t few;
	uint32_t few_ns, few_packets;
	/* since then: no cut, no pause, no delay near the target; delay_unknown: no loss and
	 * no long round trips either */
	uint64_t calm_at;
	uint64_t cut_at;    /* last cut */
	uint64_t sample_at; /* last sample */
	uint64_t active_at; /* last sample, or last packet sent or requested */
	uint64_t round_at;  /* begin of the round trip for which cnp_seen stands */
	uint64_t send_at;   /* when the next packet may leave, see congestion_pace() */
	/* The delay target; cc_target.h explains the words. */
	uint8_t level;
	/* Idle samples, and those of them for which the target is too low, or twice too
	 * high. */
	uint8_t idle, idle_high, idle_low;
	uint8_t cuts;        /* by delay, since watch_at */
	uint8_t climb_shift; /* a climb begins after 1 << climb_shift starved watches */
	uint8_t climb_skip;  /* samples that do not count */
	uint16_t starved;    /* starved watches since the last climb */
	uint32_t idle_ns;    /* least delay of the idle samples */
	uint32_t low_ns;     /* least delay since watch_at */
	uint32_t delays;     /* since watch_at: their number, and their sum */
	uint64_t delay_sum_ns;
	uint32_t climb_from;   /* window before the climb */
	uint32_t climb_ns;     /* longest delay of a climb that is no queue of others */
	uint32_t climb_top_ns; /* longest delay of this climb until now */
	/* begin of the watch; climbing: begin of the climb, or when the window reached
	 * its top */
	uint64_t watch_at;
	uint8_t check_level; /* the level before it rose */
	uint8_t check_count; /* samples of the check */
	uint32_t check_ns;   /* the delay for which it rose; 0: it did not */
	uint32_t check_low;  /* least delay of the check */
	uint32_t check_path; /* its least round trip */
	uint32_t check_cwnd; /* the window before the check */
	uint64_t check_at;   /* check_due: when it is to begin; checking: when it began */
	uint64_t level_at;   /* when the level changed last */
	uint64_t path_at;    /* last round trip of about path_ns */
	uint64_t recent_at;  /* last rise of recent_ns */
};

/* cap: packets, the most that may be in flight. */
void cc_init(struct cc *cc, const struct cc_conf *conf, uint32_t cap);

static inline bool
cc_is_on(const struct cc *cc)
{
	return cc->cwnd != 0;
}

/* Below one packet: cc_gap_ns() has to pass between two packets. */
static inline bool
cc_is_paced(const struct cc *cc)
{
	return cc->cwnd < CC_ONE;
}

/* Packets that may be in flight; 1 if it is less. */
static inline uint32_t
cc_window(const struct cc *cc)
{
	return RTE_MAX(cc->cwnd >> CC_SHIFT, 1u);
}

/* A round trip. */
struct cc_sample {
	uint32_t delay_ns; /* its lower bound; 0 if delays are unknown */
	uint32_t rtt_ns;   /* with the wait for this host's poll; not 0 */
	uint32_t packets;  /* newly acknowledged */
	uint32_t inflight; /* to the peer, besides them */
	bool idle; /* it was sent when hardly anything was in flight to the peer */
};

/* A packet with this payload is measured. */
void cc_packet(struct cc *cc, uint32_t payload);

/* Each takes a signal in at this time, and returns why it cut the window. */

enum cc_cut cc_sample(struct cc *cc, const struct cc_sample *s, uint64_t now);
/* Packets were acknowledged besides those of samples. */
void cc_acked(struct cc *cc, uint32_t packets);
/* A packet was lost. */
enum cc_cut cc_loss(struct cc *cc, uint64_t now);
/* The nth tail-loss probe of a QP since its last progress is about to be sent, and no
 * other QP has had an answer meanwhile. */
enum cc_cut cc_probe(struct cc *cc, unsigned nth, uint64_t now);
enum cc_cut cc_cnp(struct cc *cc, uint64_t now);

/* Two probes of a QP or more, and then an answer. late: nothing was lost. */
void cc_answer(struct cc *cc, bool late);

/* Whether there was a long pause. */
static inline bool
cc_paused(const struct cc *cc, uint64_t now)
{
	return now - cc->active_at > CC_IDLE_NS;
}

/* Packets are about to be sent, and none is in flight. After a long pause the window is the
 * first one again: what the network can take is no longer known. */
void cc_resume(struct cc *cc, uint64_t now);

/* Below one packet: the wait between two packets. */
uint64_t cc_gap_ns(const struct cc *cc);

/* The delay that the window aims at, if delays are known. */
uint32_t cc_target_ns(const struct cc *cc);

#endif
