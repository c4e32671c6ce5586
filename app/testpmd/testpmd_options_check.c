/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that concern several options. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "testpmd_options.h"
#include "testpmd_parse.h"

static const char *const loop_addr[2] = {
	"192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"};

static void
first_address(char dst[PEER_TEXT_MAX], const char *list)
{
	size_t len = strcspn(list, "/,");

	if (len >= PEER_TEXT_MAX)
		len = PEER_TEXT_MAX - 1;
	memcpy(dst, list, len);
	dst[len] = '\0';
}

/* Arranges the ports as 0 and 1, in this order. */
static int
loop_ports(struct conf *conf, char err[ERR_MAX])
{
	struct port_conf ends[2] = {conf->common, conf->common};

	ends[0].mode_given = conf->common.mode_given;
	ends[1].mode_given = false;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		if (conf->ports[i].port > 1)
			return error_set(err,
				"invalid value '%" PRIu64 "' for --port: expected 0 or "
				"1 with --loop",
				conf->ports[i].port);
		ends[conf->ports[i].port] = conf->ports[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		conf->ports[i] = ends[i];
		conf->ports[i].port = i;
	}
	conf->n_ports = 2;
	return 0;
}

static enum mode_kind
mode_opposite(enum mode_kind mode)
{
	switch (mode) {
	case MODE_SEND:
		return MODE_SINK;
	case MODE_SINK:
		return MODE_SEND;
	default:
		return mode;
	}
}

int
options_complete_loop(struct conf *conf, char err[ERR_MAX])
{
	struct port_conf *a = &conf->ports[0], *b = &conf->ports[1];

	if (loop_ports(conf, err) != 0)
		return -1;
	for (unsigned i = 0; i < 2; i++) {
		if (conf->ports[i].addr[0] == '\0')
			strcpy(conf->ports[i].addr, loop_addr[i]);
	}
	if (a->peer[0] == '\0')
		first_address(a->peer, b->addr);
	if (b->peer[0] == '\0')
		first_address(b->peer, a->addr);
	peers_set(a);
	peers_set(b);
	/* If only one end has a --mode, the other gets the opposite one. */
	if (!b->mode_given)
		b->mode = mode_opposite(a->mode);
	else if (!a->mode_given)
		a->mode = mode_opposite(b->mode);
	if (b->mode != mode_opposite(a->mode))
		return error_set(err,
			"invalid value '%s' for --mode: the other end of --loop has "
			"--mode %s; expected send and sink, or pingpong or both at each end",
			mode_name(b->mode), mode_name(a->mode));
	return 0;
}

/* Each peer has the same share. The ends know the QPNs of each other by that. */
static int
check_share(const char *option, const char *of, uint64_t value, unsigned peers,
	char err[ERR_MAX])
{
	if (value % peers == 0)
		return 0;
	return error_set(err,
		"invalid value '%" PRIu64
		"' for --%s: expected a multiple of %u, the number "
		"of peers (--peer), so that each has as many %s",
		value, option, peers, of);
}

static int
check_peers(const struct conf *conf, const struct port_conf *port, char err[ERR_MAX])
{
	unsigned n = port_peers(port);
	char entry[PEER_TEXT_MAX];
	const char *wrong = peers_list_wrong(port, entry);

	if (wrong != NULL)
		return error_set(err, "invalid value '%s' for --peer: %s %s", port->peer,
			entry, wrong);
	if (check_share("qps", "QPs", conf->qps, n, err) != 0 ||
		check_share("count", "messages", conf->count, n, err) != 0)
		return -1;
	if (n > 1 && port->mode == MODE_PINGPONG)
		return error_set(err,
			"invalid value 'pingpong' for --mode: expected send, sink or both "
			"with %u peers (--peer)",
			n);
	return 0;
}

static int
check_port(const struct conf *conf, const struct port_conf *port, char err[ERR_MAX])
{
	if (port->addr[0] == '\0')
		return error_set(err,
			"missing --addr for port %" PRIu64 ": expected its own "
			"ADDRESS/PREFIX, for example --addr 192.0.2.1/24 (after --)",
			port->port);
	if (port->peer[0] == '\0' && !conf->interactive && conf->cmdline_file == NULL)
		return error_set(err,
			"missing --peer for port %" PRIu64 ": expected the address of "
			"the peer, for example --peer 192.0.2.2",
			port->port);
	if (port->peer[0] != '\0' && port->n_peers == 0)
		return error_set(err,
			"invalid value '%s' for --peer: this is the port's own "
			"address; expected the address of the peer",
			port->peer);
	return check_peers(conf, port, err);
}

static int
check_queues(const struct conf *conf, char err[ERR_MAX])
{
	/* The default fits any depth: tx_signal_every(). */
	if (conf->signal_given && conf->signal_every > conf->sq_depth)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --signal-every: expected at "
			"most %" PRIu64 " (--sq-depth), or the send queue fills up "
			"with unsignaled requests",
			conf->signal_every, conf->sq_depth);
	if (conf->srq_limit != 0 && conf->rq)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --srq-limit: expected 0 with "
			"--rq, as only an SRQ has a limit",
			conf->srq_limit);
	if (conf->depth != 0 && conf->srq_limit > conf->depth)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --srq-limit: expected at most "
			"%" PRIu64 " (--depth)",
			conf->srq_limit, conf->depth);
	return 0;
}

/* QPNs of this end, and of the peers, where this end may have another place. */
static int
check_qpns(const struct conf *conf, const struct port_conf *port, char err[ERR_MAX])
{
	unsigned places = port_peers(port);

	for (unsigned i = 0; i < port->n_peers; i++) {
		if (port->peers[i].place >= places)
			places = port->peers[i].place + 1;
	}
	if (conf->qpn_base + conf_qps(conf, port) * conf_qpns(conf, port) * places - 1 >
		0xfffffe)
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --qps: expected no QPN above 0xfffffe (--qpn-base is 0x%" PRIx64
			")",
			conf->qps, conf->qpn_base);
	if (conf->qpn_base < 2 + (uint64_t)places * conf_cores(conf))
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --qpn-base: expected at least %u, as the QPs before it, one "
			"for each peer and core, ask and answer",
			conf->qpn_base, 2 + places * conf_cores(conf));
	return 0;
}

/* The threads that post and poll have other lcores than the engines, which are divided evenly. */
static int
check_engine_lcores(const struct conf *conf, char err[ERR_MAX])
{
	uint64_t engines = conf->engines * conf->n_ports;

	if (conf->n_engine_lcores == 0)
		return 0;
	if (engines % conf->n_engine_lcores != 0)
		return error_set(err,
			"invalid value '%s' for --engine-lcores: expected a number of lcores "
			"that divides %" PRIu64
			", the engines of all ports (--engines), so that each runs as many, "
			"not %u",
			conf->engine_lcores_text, engines, conf->n_engine_lcores);
	for (unsigned i = 0; i < conf->n_corelist; i++) {
		if (conf_is_engine_lcore(conf, conf->corelist[i]))
			return error_set(err,
				"invalid value '%s' for --engine-lcores: expected other lcores "
				"than those of --corelist, which has %u, too",
				conf->engine_lcores_text, conf->corelist[i]);
	}
	if (conf->sleep)
		return error_set(err,
			"invalid option --sleep: expected it without --engine-lcores, which "
			"never sleep");
	return 0;
}

static int
check_cores(const struct conf *conf, char err[ERR_MAX])
{
	for (unsigned i = 0; i < conf->n_ports; i++) {
		uint64_t qps = conf_qps(conf, &conf->ports[i]);

		if (conf->nb_cores > qps)
			return error_set(err,
				"invalid value '%" PRIu64
				"' for --nb-cores: expected at most "
				"%" PRIu64
				" (--qps, of each peer), so that each core has a QP",
				conf->nb_cores, qps);
	}
	if (conf->n_corelist != 0 && conf->nb_cores > conf->n_corelist)
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --nb-cores: expected at most %u, "
			"the lcores of --corelist",
			conf->nb_cores, conf->n_corelist);
	if (conf->nb_cores != 0 && conf->sleep)
		return error_set(err,
			"invalid option --sleep: expected it without --nb-cores, whose lcores "
			"never sleep");
	if (conf->srq_per_core && conf->rq)
		return error_set(
			err, "invalid option --srq-per-core: expected it without --rq");
	if (conf_shares_srq(conf) && conf->srq_limit != 0)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --srq-limit: expected 0, or "
			"--srq-per-core, with several cores",
			conf->srq_limit);
	if (conf_shares_srq(conf) && conf->type == TYPE_XRC)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --nb-cores: expected 1, or "
			"--srq-per-core, with --type xrc, whose SRQ has one CQ",
			conf->nb_cores);
	return 0;
}

/* The number of a message that follows lost ones is found by its first 8 bytes. */
static int
check_type(const struct conf *conf, char err[ERR_MAX])
{
	for (unsigned i = 0; i < conf->n_sizes && type_is_lossy(conf->type); i++) {
		if (conf->sizes[i] < 8 && !conf->no_verify)
			return error_set(err,
				"invalid value '%" PRIu64
				"' for --size: expected at least 8 "
				"with --type %s, or --no-verify",
				conf->sizes[i], qp_type_name(conf->type));
	}
	if (conf->type == TYPE_UD && conf->mtu != 0 && conf->size_max > conf->mtu)
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --size: expected at most %" PRIu64
			" (--mtu) with --type ud",
			conf->size_max, conf->mtu);
	if (conf->type == TYPE_XRC && conf->rq)
		return error_set(err,
			"invalid option --rq: expected --srq with --type xrc, which has no receive "
			"queues");
	return 0;
}

static int
check_op(const struct conf *conf, char err[ERR_MAX])
{
	char mix[192], valid[128];
	const struct op_row *lacks = mix_lacks(&conf->mix, conf->type);

	mix_print(&conf->mix, mix, sizeof(mix));
	if (lacks != NULL) {
		type_ops_print(conf->type, valid, sizeof(valid));
		return error_set(err,
			"invalid value '%s' for --op: expected %s with --type %s",
			lacks->name, valid, qp_type_name(conf->type));
	}
	if ((mix_all(&conf->mix) & OP_WORD) != 0 && conf->size_given &&
		(conf->n_sizes != 1 || conf->sizes[0] != OP_WORD_LEN))
		return error_set(err,
			"invalid value '%" PRIu64 "' for --size: expected 8 with --op %s",
			conf->sizes[0] == OP_WORD_LEN ? conf->sizes[1] : conf->sizes[0],
			mix);
	if (conf_exchanges(conf) && conf->signal_every == 0)
		return error_set(err,
			"invalid value '0' for --signal-every: expected at least 1 with --op %s, "
			"which is verified when it completes",
			mix);
	if (check_type(conf, err) != 0)
		return -1;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		enum mode_kind mode = conf->ports[i].mode;

		if (!conf_exchanges(conf) || mode != MODE_PINGPONG)
			continue;
		if (conf->type != TYPE_RC)
			return error_set(err,
				"invalid value '%s' for --type: expected rc with --mode %s",
				qp_type_name(conf->type), mode_name(mode));
		return error_set(err,
			"invalid value '%s' for --op: expected send with --mode %s", mix,
			mode_name(mode));
	}
	return 0;
}

static int
check_rate(const struct conf *conf, char err[ERR_MAX])
{
	bool sends = false;

	if (conf->rate.per_s == 0)
		return 0;
	if (conf->sleep)
		return error_set(
			err, "invalid option --rate: expected it without --sleep");
	if (conf->n_sweep != 0 && (conf->duration_s == 0 || conf->count != 0))
		return error_set(err,
			"invalid option --rate-sweep: expected it with --duration, and without "
			"--count");
	if (conf->n_sweep != 0 && (conf->interactive || conf->cmdline_file != NULL))
		return error_set(err,
			"invalid option --rate-sweep: expected it without -i and "
			"--cmdline-file (`set rate`)");
	if (conf->n_sweep != 0 && type_is_lossy(conf->type))
		return error_set(err,
			"invalid option --rate-sweep: expected --type rc or xrc, whose "
			"completions give latencies");
	if (conf->rate.bits && conf->size_max == 0 &&
		(mix_any(&conf->mix) & OP_WORD) == 0)
		return error_set(err,
			"invalid option --rate: expected messages a second with --size 0");
	if (conf->rate.bits && (mix_all(&conf->mix) & OP_EMPTY) != 0)
		return error_set(err,
			"invalid option --rate: expected messages a second with --op flush, "
			"which has no payload");
	for (unsigned i = 0; i < conf->n_ports; i++) {
		if (conf->ports[i].mode == MODE_PINGPONG)
			return error_set(err,
				"invalid option --rate: expected --mode send or both, not pingpong");
		sends |= conf->ports[i].mode == MODE_SEND;
	}
	if (conf->n_sweep != 0 && !sends)
		return error_set(
			err, "invalid option --rate-sweep: expected --mode send");
	return 0;
}

/* The files are written when all runs are over. */
static int
check_sweep_files(const struct conf *conf, char err[ERR_MAX])
{
	static const char *const kinds[] = SWEEP_KINDS;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && conf->n_sweep != 0;
		i++) {
		char path[DUMP_PATH_MAX + 8];

		snprintf(path, sizeof(path), "%s.%s", conf->sweep_file, kinds[i]);
		if (!file_is_writable(path))
			return error_set(err,
				"invalid value '%s' for --sweep-file: cannot write '%s': %s; "
				"expected a name in a folder for files of this user",
				conf->sweep_file, path, strerror(errno));
	}
	return 0;
}

int
options_check(const struct conf *conf, char err[ERR_MAX])
{
	if (conf->loop && conf->shared != SHARED_NOT)
		return error_set(err,
			"invalid option --shared: expected it without --loop, whose ports are "
			"no ethdev ports");
	if (conf->sleep && conf->shared != SHARED_NOT && conf->shared != SHARED_QUEUES)
		return error_set(err,
			"invalid option --sleep: expected it without --shared frames, where this "
			"program polls the port");
	for (unsigned i = 0; i < conf->n_ports; i++) {
		if (check_port(conf, &conf->ports[i], err) != 0 ||
			check_qpns(conf, &conf->ports[i], err) != 0)
			return -1;
	}
	if (check_op(conf, err) != 0 || check_rate(conf, err) != 0 ||
		check_cores(conf, err) != 0 || check_engine_lcores(conf, err) != 0)
		return -1;
	if (check_queues(conf, err) != 0)
		return -1;
	return check_sweep_files(conf, err);
}
