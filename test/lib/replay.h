/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replays one side of a capture with a QP of this library: the frames of the capture, the
 * facts that the logs state about the run (test/captures/runs.tsv), and the comparison of
 * frames and completions with those of the kernel.
 */
#ifndef ROCADE_TEST_REPLAY_H
#define ROCADE_TEST_REPLAY_H

#include "pcap.h"
#include "qp_link.h"

#define REPLAY_SLOT 8192 /* bytes of memory for each operation */
#define REPLAY_SLOTS 64
#define REPLAY_TARGET_BYTES 0x80000

/* A completion as the traffic generator logged it. */
struct replay_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	char opcode[24]; /* "-": a failure */
	uint32_t byte_len, imm, crc;
	bool has_imm, has_crc;
};

/* The options of the traffic generator that made the captures (test/captures/README.md),
 * with its defaults. */
struct replay_run {
	char commands[512];
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	unsigned access;
	uint8_t timeout, retry, rnr_retry, rnr_timer, rd_atomic, tclass;
	uint32_t flow_label;
	uint16_t udp_sport; /* 0: derived from the QPNs and the flow label */
	bool srq;
	uint32_t qpn, rkey, rkey_ro;
	uint32_t mw[2]; /* rkeys of a memory window, in the order of its binds */
	unsigned mw_count;
	struct replay_wc wcs[16]; /* completions of one of its queues */
	unsigned wc_count;
};

struct replay {
	const char *name;
	struct pcap_file file;
	uint16_t vlan;
	uint8_t wire
		[512]; /* by frame: 'd' dropped, '2' duplicated, 'c' corrupted, 's' swapped with
			    * the next one, 'l' delayed until the peer has sent again */
	uint8_t target[REPLAY_TARGET_BYTES] LINE_ALIGNED;
};

void replay_load(struct replay *r, const char *name);
void replay_unload(struct replay *r);
/* False: the frame does not parse (a capture may contain invalid frames on purpose). */
bool replay_view(const struct replay *r, unsigned frame, struct pkt_view *v);
/* The QP type that the packet belongs to. */
enum ibv_qp_type replay_type(const struct pkt_view *v);
/* Reads what the log says of a side and of its queue 'S' or 'R'. False: nothing. */
bool replay_run(const char *name, char side, char queue, struct replay_run *run);

/* Gives h the addresses and QPNs of a QP of the capture: v is a packet that this QP sends
 * (own), or receives. */
void replay_host_connect(const struct replay *r, struct host *h,
	const struct replay_run *run, uint32_t qpn, uint32_t dest_qpn,
	const struct pkt_view *v, bool own);
/* Fills the target area with its pattern, and installs a key entry with the number that
 * the capture uses. */
void replay_target_fill(struct replay *r);
void replay_key_put(
	struct replay *r, struct host *h, uint32_t key, uint64_t va, unsigned access);
void replay_key_drop(struct host *h, uint32_t key);

/* Replaces R_Key `from` by `to` in a request that names it, and updates the ICRC. */
void replay_rkey_replace(uint8_t *frame, uint32_t len, uint32_t from, uint32_t to);
void replay_frames_equal(const struct pkt_view *ours, const struct pkt_view *theirs);
/* at: address of the bytes of a receive or READ. */
void replay_wc_equal(
	const struct cqe *ours, const struct replay_wc *theirs, const uint8_t *at);
/* Checks that rules.tsv (docs/protocol.md 19) lists this difference from the kernel. */
void replay_topic_check(const char *topic);
uint32_t replay_crc(const uint8_t *at, size_t len);
/* Writes the first len payload bytes of operation k of the traffic generator
 * (test/captures/README.md). */
void replay_payload(uint8_t *to, unsigned k, uint32_t len);

#endif
