/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of a capture played by a QP of ours: which frames there are, what the logs say
 * of the run (test/captures/runs.tsv), and the comparison of a frame and of a completion
 * with the kernel's.
 */
#ifndef ROCADE_TEST_REPLAY_H
#define ROCADE_TEST_REPLAY_H

#include "pcap.h"
#include "qp_pair.h"

#define REPLAY_SLOT 8192 /* bytes of memory for each operation */
#define REPLAY_SLOTS 64
#define REPLAY_TARGET_BYTES 0x80000

/* A completion as the log has it. */
struct replay_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	char opcode[24]; /* "-": a failure */
	uint32_t byte_len, imm, crc;
	bool has_imm, has_crc;
};

/* The options of the traffic generator, with its defaults. */
struct replay_run {
	char commands[512];
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	unsigned access;
	uint8_t timeout, retry, rnr_retry, rnr_timer, rd_atomic, tclass;
	uint32_t flow_label;
	uint16_t udp_sport; /* 0: follows from the above */
	bool srq;
	uint32_t qpn, rkey, rkey_ro;
	uint32_t mw[2]; /* rkeys of a memory window, one after the other */
	unsigned mw_count;
	struct replay_wc wcs[16]; /* of one of its queues */
	unsigned wc_count;
};

struct replay {
	const char *name;
	struct pcap_file file;
	uint16_t vlan;
	uint8_t wire[512]; /* 'd'rop, dup ('2') or 'c'orrupt, by frame */
	uint8_t target[REPLAY_TARGET_BYTES] LINE_ALIGNED;
};

void
replay_load(struct replay *r, const char *name);
void
replay_unload(struct replay *r);
/* False: not one for us to parse (a capture holds wrong frames on purpose). */
bool
replay_view(const struct replay *r, unsigned frame, struct pkt_view *v);
/* Of the QP that it is a packet of. */
enum ibv_qp_type
replay_type(const struct pkt_view *v);
/* What the log says of that side and its queue 'S' or 'R'; false: nothing. */
bool
replay_run(const char *name, char side, char queue, struct replay_run *run);

/* h becomes the QP whose frames these are: v is one that it takes, or sends (own). */
void
replay_take_place(const struct replay *r, struct host *h, const struct replay_run *run,
	uint32_t qpn, uint32_t dest_qpn, const struct pkt_view *v, bool own);
/* The pattern of the target area, and an entry with the number that the capture has. */
void
replay_target_fill(struct replay *r);
void
replay_key_put(
	struct replay *r, struct host *h, uint32_t key, uint64_t va, unsigned access);
void
replay_key_drop(struct host *h, uint32_t key);

/* The R_Key of a request that names this one, with an ICRC to match. */
void
replay_rekey(uint8_t *frame, uint32_t len, uint32_t from, uint32_t to);
void
replay_frames_equal(const struct pkt_view *ours, const struct pkt_view *theirs);
/* at: where the bytes of a receive or READ are. */
void
replay_wc_equal(
	const struct cqe *ours, const struct replay_wc *theirs, const uint8_t *at);
/* That a difference from the kernel is one that rules.tsv has: section 19, or a bug. */
void
replay_topic_check(const char *topic);
uint32_t
replay_crc(const uint8_t *at, size_t len);
/* Payload byte i of operation k. */
void
replay_payload(uint8_t *to, unsigned k, uint32_t len);

#endif
