/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration. All numbers are uint64_t, so that one kind of option row fits
 * each. */
#ifndef PERF_CONF_H
#define PERF_CONF_H

#include <common/options.h>

#define PROGRAM "rocade-perf"
#define NAME_CHARS 63
#define PATH_CHARS 107 /* of a UNIX socket */
#define BURST_MAX 256
#define ENGINES_MAX 16
#define QPS_MAX 65536
#define SIZE_MAX_BYTES (UINT64_C(1) << 30)

enum mode {
	MODE_SEND,
	MODE_WRITE,
	MODE_READ,
	MODE_PINGPONG,
	MODE_WRITE_LAT,
	MODE_READ_LAT,
	MODE_RAW_PINGPONG,
	MODE_COUNT
};

/* The measurement. The client takes it from its options, the server from the client. */
struct plan {
	uint64_t mode;
	uint64_t size, qps, burst, signal_every, inline_max, sq_depth;
	uint64_t rq;     /* a receive queue per QP instead of one SRQ */
	uint64_t ud;     /* UD QPs */
	uint64_t events; /* the receiving end sleeps on a completion channel */
	uint64_t engines;
	uint64_t depth;
	uint64_t mtu; /* 0: the largest that the port's MTU carries */
	uint64_t rxd, txd, peer_window;
	uint64_t qpn_base, psn, timeout;
	uint64_t reads; /* outstanding READs per QP */
	uint64_t loss_ppm;
	uint64_t seconds, warmup_ms;
};

struct conf {
	struct plan plan;
	bool server;
	uint64_t port;
	const char *socket;
	const char *device; /* verbs device; NULL: open an ethdev port */
	const char *addr;
	const char *peer;
	const char *json; /* NULL: none */
	const char *cc;   /* NULL: the default */
};

const char *perf_mode_name(uint64_t mode);
bool mode_has_latency(uint64_t mode);

/* Reads the options after EAL's, from argv[0] on. Returns -1 to go on, else the exit
 * code. */
int perf_options_read(struct conf *conf, int argc, char **argv);

#endif
