/* SPDX-License-Identifier: BSD-3-Clause */
/* listen, connect */
#include <stdio.h>

#include <cmdline_parse_num.h>
#include <cmdline_parse_string.h>

#include "commands.h"

struct cm_words {
	cmdline_fixed_string_t verb, peer;
	uint16_t port;
};

static cmdline_parse_token_string_t word_listen =
	TOKEN_STRING_INITIALIZER(struct cm_words, verb, "listen");
static cmdline_parse_token_string_t word_connect =
	TOKEN_STRING_INITIALIZER(struct cm_words, verb, "connect");
static cmdline_parse_token_string_t word_peer =
	TOKEN_STRING_INITIALIZER(struct cm_words, peer, NULL);
static cmdline_parse_token_num_t word_port =
	TOKEN_NUM_INITIALIZER(struct cm_words, port, RTE_UINT16);

/* The only port; with --loop the one that receives or sends. NULL if there are several
 * ports. */
static struct host *
command_host(bool listens)
{
	if (the_run->n_hosts > 1 && !the_run->conf.loop)
		return NULL;
	return &the_run->hosts[listens ? the_run->n_hosts - 1 : 0];
}

static bool
command_allowed(const char *verb, const struct host *host)
{
	if (host == NULL)
		command_failed("%s: needs a single --port, or --loop", verb);
	else if (the_run->active)
		command_failed("%s: a run is active (`stop` ends it)", verb);
	return host != NULL && !the_run->active;
}

static void
do_listen(void *parsed, struct cmdline *cl, void *data)
{
	const struct cm_words *words = parsed;
	struct host *host = command_host(true);
	char err[ERR_MAX];

	(void)cl;
	(void)data;
	if (command_allowed("listen", host) &&
		host_cm_listen(host, words->port, err) != 0)
		command_failed("listen: %s", err);
}

cmdline_parse_inst_t cmd_listen = {.f = do_listen,
	.help_str = "listen PORT: wait for RDMA-CM connections",
	.tokens = {(void *)&word_listen, (void *)&word_port, NULL}};

static void
do_connect(void *parsed, struct cmdline *cl, void *data)
{
	const struct cm_words *words = parsed;
	struct host *host = command_host(false);
	char err[ERR_MAX];
	int peer;

	(void)cl;
	(void)data;
	if (!command_allowed("connect", host))
		return;
	commands_wait_begin();
	peer = host_cm_connect(host, words->peer, words->port, err);
	if (peer < 0)
		command_failed("connect: %s", err);
	else if (run_await_cm(the_run, host, peer) != 0)
		command_failed("connect: %s", port_failed(host, peer)->reason);
	commands_wait_end();
}

cmdline_parse_inst_t cmd_connect = {.f = do_connect,
	.help_str = "connect IP PORT: connect all QPs by RDMA-CM",
	.tokens = {(void *)&word_connect, (void *)&word_peer, (void *)&word_port, NULL}};
