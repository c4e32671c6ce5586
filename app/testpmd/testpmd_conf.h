/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration. All numbers are uint64_t, so that one kind of option row fits
 * each. */
#ifndef TESTPMD_CONF_H
#define TESTPMD_CONF_H

#include <rocade/rocade.h>

#include <common/options.h>

#include "op.h"

#define PROGRAM "rocade-testpmd"

#define PORTS_MAX 16
#define SIZES_MAX 64
#define ADDR_TEXT_MAX 512
#define PEER_TEXT_MAX 64
#define PEERS_MAX 64
#define PEER_LIST_MAX (PEERS_MAX * PEER_TEXT_MAX)

#define MSG_SIZE_MAX (UINT64_C(1) << 31)
#define BURST_MAX 256
#define QPS_MAX 65536
#define CORES_MAX 128

enum mode_kind { MODE_SEND, MODE_SINK, MODE_PINGPONG, MODE_BOTH };

/* How ports are shared with this program (app_port.h). */
enum shared_kind { SHARED_NOT, SHARED_FRAMES, SHARED_QUEUES, SHARED_SEGMENTS };

/* A peer of a port. */
struct peer_conf {
	char addr[PEER_TEXT_MAX];
	unsigned place; /* of this end among the peers of that one */
};

/* Options of one port. Given before the first --port, they apply to all ports. */
struct port_conf {
	uint64_t port; /* ethdev port id; 0 or 1 with --loop */
	uint64_t vlan;
	uint64_t if_mtu;
	enum mode_kind mode;
	bool mode_given;
	char addr[ADDR_TEXT_MAX];
	char gateway4[PEER_TEXT_MAX];
	char gateway6[PEER_TEXT_MAX];
	char peer[PEER_LIST_MAX]; /* --peer, as it was given */
	bool peer_open;           /* another --peer adds to it */
	/* peers.c: those of --peer, without this end; n_peers may be 0 */
	struct peer_conf peers[PEERS_MAX];
	unsigned n_peers;
};

#define DUMP_PATH_MAX 400

#define SWEEP_MAX 32
#define SWEEP_KINDS                                                                      \
	{                                                                                \
		"csv", "json", "svg"                                                     \
	}

/* Of --rate; per_s is 0 without it. */
struct rate_conf {
	uint64_t per_s; /* messages, or bits of their payload */
	bool bits;
};

struct conf {
	struct port_conf ports[PORTS_MAX];
	unsigned n_ports;
	struct port_conf common;   /* defaults of ports added later */
	struct port_conf *current; /* target of port options: common or the last port */

	bool loop;
	enum shared_kind shared;
	bool sleep;
	bool interactive;
	bool auto_start;
	const char *cmdline_file;
	const char *json_file;
	uint64_t stats_period;

	uint64_t nb_cores; /* traffic loops on worker lcores; 0: one in the main thread */
	uint16_t corelist[CORES_MAX];      /* lcores of the traffic loops */
	unsigned n_corelist;               /* 0: the first worker lcores */
	uint16_t engine_lcores[CORES_MAX]; /* lcores of the engines of all ports */
	unsigned n_engine_lcores;          /* 0: without --engine-lcores */
	const char *engine_lcores_text;    /* as it was given */
	uint64_t engines, rxd, txd, peer_window, paths;
	bool no_cksum_offload, no_cnp, no_sack, flight_recorder;
	const char *cc;   /* NULL: the default */
	const char *dump; /* NULL: none */
	uint64_t dump_snap;

	uint64_t qps, qpn_base, psn;
	uint64_t sizes[SIZES_MAX];
	unsigned n_sizes;
	uint64_t size_max; /* largest of sizes */
	uint64_t size_cap; /* size that buffers were allocated for */
	bool binds;        /* send queues have room for the binds of send-inv */
	bool flushes;      /* QPs can post FLUSHes */
	uint64_t burst, inline_max, signal_every, sq_depth;
	enum type_kind type; /* of the QPs */
	struct op_mix mix;   /* what is sent */
	bool size_given, signal_given;
	bool rq; /* a receive queue per QP */
	bool srq_per_core;
	bool events;
	uint64_t depth, srq_limit;
	struct rate_conf rate, sweep[SWEEP_MAX];
	unsigned n_sweep;       /* 0: no --rate-sweep */
	const char *sweep_file; /* the names of its files end in one of SWEEP_KINDS */
	uint64_t duration_s, count, wait_s;
	bool wait_given;
	bool no_verify;

	uint64_t mtu, tclass, hop_limit;
	uint64_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	struct rocade_impair impair;
};

/* How many traffic loops there are, each with its share of the QPs. */
static inline unsigned
conf_cores(const struct conf *conf)
{
	return conf->nb_cores == 0 ? 1 : (unsigned)conf->nb_cores;
}

/* Whether --engine-lcores has this lcore. */
static inline bool
conf_is_engine_lcore(const struct conf *conf, unsigned lcore)
{
	bool found = false;

	for (unsigned i = 0; i < conf->n_engine_lcores; i++)
		found |= conf->engine_lcores[i] == lcore;
	return found;
}

/* How many peers have a share of the QPs of a port. */
static inline unsigned
port_peers(const struct port_conf *pc)
{
	return pc->n_peers == 0 ? 1 : pc->n_peers;
}

/* The share of each peer: QPs, and messages of --count. */
static inline uint64_t
conf_qps(const struct conf *conf, const struct port_conf *pc)
{
	return conf->qps / port_peers(pc);
}

static inline uint64_t
conf_count(const struct conf *conf, const struct port_conf *pc)
{
	return conf->count / port_peers(pc);
}

/* How many QPNs there are for each QP of --qps: an XRC QP sends or receives, so that with --mode both there are
 * two, first that which sends. */
static inline unsigned
conf_qpns(const struct conf *conf, const struct port_conf *pc)
{
	return conf->type == TYPE_XRC && pc->mode == MODE_BOTH ? 2 : 1;
}

/* Whether the SRQ of a port is that of several cores. */
static inline bool
conf_shares_srq(const struct conf *conf)
{
	return conf_cores(conf) > 1 && !conf->rq && !conf->srq_per_core;
}

/* Whether the ends agree on what they do before they start (exchange.h), and the receiver has a target.
 * SENDs on RC QPs need neither. */
static inline bool
conf_exchanges(const struct conf *conf)
{
	return conf->type != TYPE_RC || !mix_is_send(&conf->mix);
}

/* The bytes of a message of this operation, with this index in sizes. */
static inline uint64_t
op_len(const struct conf *conf, const struct op_row *op, uint32_t size_i)
{
	if ((op->flags & OP_EMPTY) != 0)
		return 0;
	return (op->flags & OP_WORD) != 0 ? OP_WORD_LEN : conf->sizes[size_i];
}

#endif
