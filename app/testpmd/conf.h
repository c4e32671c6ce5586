/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asked for. Numbers are uint64_t throughout, so that one row of the option
 * table describes each. */
#ifndef TESTPMD_CONF_H
#define TESTPMD_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORTS_MAX 16
#define SIZES_MAX 64
#define ADDR_TEXT_MAX 512
#define PEER_TEXT_MAX 64
#define ERR_MAX 1024

#define MSG_SIZE_MAX (UINT64_C(1) << 31)
#define BURST_MAX 256
#define QPS_MAX 65536

/* The exit codes of the program: help.c has their table. */
enum exit_code { EXIT_OK, EXIT_RUN, EXIT_USAGE, EXIT_ENVIRONMENT };

enum mode_kind { MODE_SEND, MODE_SINK, MODE_PINGPONG };

/* Of one port: given before the first --port, an option is for all of them. */
struct port_conf {
	uint64_t port; /* ethdev port id; 0 or 1 with --loop */
	uint64_t vlan;
	uint64_t if_mtu;
	enum mode_kind mode;
	bool mode_given;
	char addr[ADDR_TEXT_MAX];
	char gateway4[PEER_TEXT_MAX];
	char gateway6[PEER_TEXT_MAX];
	char peer[PEER_TEXT_MAX];
};

struct impair_conf {
	uint64_t loss_ppm, dup_ppm, reorder_ppm, corrupt_ppm;
	uint64_t seed;
};

struct conf {
	struct port_conf ports[PORTS_MAX];
	unsigned n_ports;
	struct port_conf common; /* for the ports that come */
	struct port_conf
		*current; /* what an option of a port is for: common or the last port */

	bool loop;
	bool interactive;
	bool auto_start;
	bool help, version;
	const char *cmdline_file;
	const char *json_file;
	uint64_t stats_period;

	uint64_t engines, rxd, txd, peer_window;
	bool no_cksum_offload;

	uint64_t qps, qpn_base, psn;
	uint64_t sizes[SIZES_MAX];
	unsigned n_sizes;
	uint64_t size_max; /* of sizes */
	uint64_t size_cap; /* that buffers were made for */
	uint64_t burst, inline_max, signal_every, sq_depth;
	bool rq; /* each QP has receives of its own */
	uint64_t depth, srq_limit;
	uint64_t duration_s, count, wait_s;
	bool wait_given;
	bool no_verify;

	uint64_t mtu, tclass, hop_limit;
	uint64_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	struct impair_conf impair;
};

#endif
