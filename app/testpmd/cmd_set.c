/* SPDX-License-Identifier: BSD-3-Clause */
/* set ... */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmdline_parse_num.h>
#include <cmdline_parse_string.h>

#include <common/impair_option.h>

#include "commands.h"
#include "testpmd_options.h"
#include "testpmd_parse.h"

struct set_words {
	cmdline_fixed_string_t set, object, name;
	cmdline_multi_string_t rest; /* of the line: a value may be a long list */
	uint32_t index, number;
};

#define WORD(name, field, text)                                                          \
	static cmdline_parse_token_string_t name =                                       \
		TOKEN_STRING_INITIALIZER(struct set_words, field, text)

WORD(word_set, set, "set");
WORD(word_srq, object, "srq");
WORD(word_port, object, "port");
WORD(word_impair, object, "impair");
WORD(word_dump, object, "dump");
WORD(word_rx, name, "rx");
WORD(word_srq_name, name, "limit#size");
/* The options that `set` may change: those with a value and an effect other than
 * OPT_START. A test compares this with the option table. */
WORD(word_name, name,
	"addr#peer#gateway4#gateway6#op#size#burst#signal-every#srq-limit#rate#duration#count#"
	"wait#psn#mtu"
	"#tclass#dscp#hop-limit#timeout#retry-cnt#rnr-retry#min-rnr-timer#stats-period");
WORD(word_rest, rest, TOKEN_STRING_MULTI);
static cmdline_parse_token_num_t word_index =
	TOKEN_NUM_INITIALIZER(struct set_words, index, RTE_UINT32);
static cmdline_parse_token_num_t word_number =
	TOKEN_NUM_INITIALIZER(struct set_words, number, RTE_UINT32);

/* Applies a changed option to the host. A changed address or gateway takes effect at
 * once. The next `start` also reconnects, because the path to the peer may have
 * changed. */
static bool
host_option(struct host *host, const char *name, unsigned use)
{
	const struct port_conf *pc = host->pc;
	bool address = strcmp(name, "addr") == 0 || strncmp(name, "gateway", 7) == 0;

	if (address && rocade_port_set_addresses(host->port, pc->addr,
			       pc->gateway4[0] != '\0' ? pc->gateway4 : NULL,
			       pc->gateway6[0] != '\0' ? pc->gateway6 : NULL) != 0) {
		command_failed("--%s: %s", name, rocade_error());
		return false;
	}
	for (unsigned c = 0; c < host->head->n_hosts; c++)
		host_at(host, c)->reconnect |=
			address || (use & OPT_EFFECT) == OPT_RECONNECT;
	if (address || (use & OPT_EFFECT) == OPT_RECONNECT) {
		host_cm_outdate(host);
	}
	return true;
}

static bool
size_fits(const struct conf *changed, const struct conf *conf)
{
	return changed->size_max <= conf->size_cap;
}

/* The words of a command whose last one is the rest of the line: removes the spaces at its end. */
static const struct set_words *
words_trimmed(void *parsed)
{
	struct set_words *words = parsed;
	size_t len = strlen(words->rest);

	while (len != 0 && isspace((unsigned char)words->rest[len - 1]))
		words->rest[--len] = '\0';
	return words;
}

/* port is NULL for the only port, or for an option of all ports. */
static void
set_option(const char *name, const char *value, struct port_conf *port)
{
	struct conf *conf = &the_run->conf;
	struct conf changed = *conf;
	char err[ERR_MAX];
	unsigned port_index = port != NULL ? (unsigned)(port - conf->ports) : 0;
	unsigned use;

	changed.current = &changed.ports[port_index];
	changed.current->peer_open = false;
	if (option_set(&changed, name, value, &use, err) != 0) {
		command_failed("%s", err);
		return;
	}
	if (port == NULL && conf->n_ports > 1 && (use & OPT_OF_PORT) != 0) {
		command_failed("set %s: several ports are open (use set port N %s %s)",
			name, name, value);
		return;
	}
	if (options_check(&changed, err) != 0) {
		command_failed("%s", err);
		return;
	}
	if (the_run->active && (use & OPT_EFFECT) == OPT_RECONNECT) {
		command_failed("set %s: a run is active (`stop` ends it)", name);
		return;
	}
	if (port_peers(changed.current) != port_peers(&conf->ports[port_index])) {
		command_failed(
			"invalid value '%s' for --%s: expected as many peers as at "
			"program start, which have the QPs: %u",
			value, name, port_peers(&conf->ports[port_index]));
		return;
	}
	if (!size_fits(&changed, conf)) {
		command_failed("invalid value '%s' for --size: expected at most %" PRIu64
			       " bytes, the largest --size at program start",
			value, conf->size_cap);
		return;
	}
	if ((mix_any(&changed.mix) & OP_INV) != 0 && !conf->binds) {
		command_failed(
			"invalid value '%s' for --op: expected send-inv at program "
			"start, when send queues get room for binds",
			value);
		return;
	}
	if (mix_has(&changed.mix, OP_FLUSH) && !conf->flushes) {
		command_failed(
			"invalid value '%s' for --op: expected flush at program start, "
			"when QPs are created that have it",
			value);
		return;
	}
	if (changed.stats_period != conf->stats_period)
		the_run->line_ns = clock_ns() + changed.stats_period * NS_PER_SECOND;
	changed.current = conf->current;
	*conf = changed;
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		if (((use & OPT_OF_PORT) == 0 || i == port_index) &&
			!host_option(&the_run->hosts[i], name, use))
			return;
	}
}

static void
do_set(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_words *words = words_trimmed(parsed);

	(void)cl;
	(void)data;
	set_option(words->name, words->rest, NULL);
}

cmdline_parse_inst_t cmd_set = {.f = do_set,
	.help_str = "set NAME VALUE: set an option",
	.tokens = {(void *)&word_set, (void *)&word_name, (void *)&word_rest, NULL}};

static void
do_set_port(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_words *words = words_trimmed(parsed);
	struct conf *conf = &the_run->conf;

	(void)cl;
	(void)data;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		if (conf->ports[i].port == words->index) {
			set_option(words->name, words->rest, &conf->ports[i]);
			return;
		}
	}
	command_failed("set port %" PRIu32
		       ": port not open (`show port` lists the ports)",
		words->index);
}

cmdline_parse_inst_t cmd_set_port = {.f = do_set_port,
	.help_str = "set port N NAME VALUE: set an option of port N",
	.tokens = {(void *)&word_set, (void *)&word_port, (void *)&word_index,
		(void *)&word_name, (void *)&word_rest, NULL}};

/* SRQs are numbered across all ports, and the cores of each. */
static struct host *
srq_host(uint32_t index)
{
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		struct host *head = &the_run->hosts[i];

		for (unsigned c = 0; c < head->n_hosts; c++) {
			struct host *host = host_at(head, c);

			if (host->verbs.srq != NULL && !borrows_srq(host) && index-- == 0)
				return host;
		}
	}
	return NULL;
}

static void
do_set_srq(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_words *words = parsed;
	struct host *host = srq_host(words->index);
	char err[ERR_MAX];
	int rc;

	(void)cl;
	(void)data;
	if (host == NULL) {
		command_failed("set srq %" PRIu32
			       ": no such SRQ: SRQs are numbered from 0, in "
			       "the order of the ports that receive through one",
			words->index);
		return;
	}
	if (strcmp(words->name, "limit") == 0)
		rc = host_srq_limit(host, words->number, err);
	else
		rc = host_srq_resize(host, words->number, err);
	if (rc != 0)
		command_failed("set srq %" PRIu32 " %s %" PRIu32 ": %s", words->index,
			words->name, words->number, err);
}

cmdline_parse_inst_t cmd_set_srq = {.f = do_set_srq,
	.help_str = "set srq N limit|size VALUE: arm the limit, resize",
	.tokens = {(void *)&word_set, (void *)&word_srq, (void *)&word_index,
		(void *)&word_srq_name, (void *)&word_number, NULL}};

static void
do_set_impair(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_words *words = words_trimmed(parsed);
	struct conf *conf = &the_run->conf;
	char err[ERR_MAX];

	(void)cl;
	(void)data;
	if (!parse_impair_words(words->rest, &conf->impair)) {
		command_failed("invalid value '%s' for set impair rx: %s; expected %s",
			words->rest, list_why(), IMPAIR_VALID);
		return;
	}
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		if (host_impair(&the_run->hosts[i], err) != 0)
			command_failed("set impair rx %s: %s", words->rest, err);
	}
}

cmdline_parse_inst_t cmd_set_impair = {.f = do_set_impair,
	.help_str = "set impair rx loss 1% [dup 1%] [reorder 1%] [corrupt 0.1%], or off",
	.tokens = {(void *)&word_set, (void *)&word_impair, (void *)&word_rx,
		(void *)&word_rest, NULL}};

static void
do_set_dump(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_words *words = words_trimmed(parsed);
	char err[ERR_MAX];

	(void)cl;
	(void)data;
	if (strlen(words->rest) > DUMP_PATH_MAX) {
		command_failed("set dump: expected off, or a path of up to %d characters",
			DUMP_PATH_MAX);
		return;
	}
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		if (strcmp(words->rest, "off") == 0)
			host_dump_end(&the_run->hosts[i]);
		else if (host_dump(&the_run->hosts[i], words->rest, err) != 0)
			command_failed("set dump %s: %s", words->rest, err);
	}
}

cmdline_parse_inst_t cmd_set_dump = {.f = do_set_dump,
	.help_str = "set dump FILE, or off: write the frames of the ports",
	.tokens = {(void *)&word_set, (void *)&word_dump, (void *)&word_rest, NULL}};
