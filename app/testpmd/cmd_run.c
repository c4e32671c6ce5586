/* SPDX-License-Identifier: BSD-3-Clause */
/* start, stop, wait, clear, show, quit */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmdline_parse_num.h>
#include <cmdline_parse_string.h>

#include "commands.h"

/* The words of a command, in order. */
struct words {
	cmdline_fixed_string_t a, b, c, d;
	uint32_t number;
};

#define WORD(name, field, text)                                                          \
	static cmdline_parse_token_string_t name =                                       \
		TOKEN_STRING_INITIALIZER(struct words, field, text)

WORD(word_start, a, "start");
WORD(word_stop, a, "stop");
WORD(word_quit, a, "quit#exit");
WORD(word_wait, a, "wait");
WORD(word_clear, a, "clear");
WORD(word_show, a, "show");
WORD(word_what, b, "port#engine#qp#srq#cq#mr#neigh#peer");
WORD(word_how, c, "stats#info#all");
WORD(word_all, d, "all");
WORD(word_port, b, "port");
WORD(word_stats, c, "stats");
WORD(word_stats_info, c, "stats#info");
WORD(word_qp, b, "qp");
WORD(word_events, c, "events");
static cmdline_parse_token_num_t word_number =
	TOKEN_NUM_INITIALIZER(struct words, number, RTE_UINT32);

static void
do_start(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	if (the_run->active) {
		command_failed("start: a run is active (`stop` ends it)");
		return;
	}
	commands_wait_begin(); /* for RDMA-CM connections */
	if (run_start(the_run) != 0)
		command_failed("start: the run did not start");
	commands_wait_end();
}

cmdline_parse_inst_t cmd_start = {.f = do_start,
	.help_str = "start: start a run",
	.tokens = {(void *)&word_start, NULL}};

static void
do_stop(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	if (the_run->active)
		run_stop(the_run);
	else
		command_failed("stop: no run is active");
}

cmdline_parse_inst_t cmd_stop = {.f = do_stop,
	.help_str = "stop: stop the run",
	.tokens = {(void *)&word_stop, NULL}};

static void
do_quit(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	run_stop(the_run);
	the_run->quit = true;
}

cmdline_parse_inst_t cmd_quit = {.f = do_quit,
	.help_str = "quit: stop, and end the program",
	.tokens = {(void *)&word_quit, NULL}};

/* While a command waits, nothing is read from the command line. */
static void
wait_until(uint64_t until_ns)
{
	void (*poll)(struct run *) = the_run->poll_commands;

	the_run->poll_commands = NULL;
	the_run->now_ns = clock_ns();
	commands_wait_begin();
	run_loop(the_run, until_ns);
	commands_wait_end();
	the_run->poll_commands = poll;
}

static void
do_wait(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	if (the_run->active)
		wait_until(UINT64_MAX);
}

cmdline_parse_inst_t cmd_wait = {.f = do_wait,
	.help_str = "wait: wait until the run ends",
	.tokens = {(void *)&word_wait, NULL}};

static void
do_wait_s(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *words = parsed;

	(void)cl;
	(void)data;
	wait_until(clock_ns() + words->number * NS_PER_SECOND);
}

cmdline_parse_inst_t cmd_wait_s = {.f = do_wait_s,
	.help_str = "wait S: wait S seconds",
	.tokens = {(void *)&word_wait, (void *)&word_number, NULL}};

/* Returns the host of the port with this id, or NULL after printing an error. */
static struct host *
port_host(const struct words *words)
{
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		if (the_run->hosts[i].pc->port == words->number)
			return &the_run->hosts[i];
	}
	command_failed("%s port %s %" PRIu32
		       ": port not open (`show port` lists the ports)",
		words->a, words->c, words->number);
	return NULL;
}

static void
clear_one(struct host *host)
{
	if (host_clear(host) != 0)
		command_failed("clear: no memory for the counters of the QPs");
}

static void
do_clear(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	for (unsigned i = 0; i < the_run->n_hosts; i++)
		clear_one(&the_run->hosts[i]);
}

static void
do_clear_port(void *parsed, struct cmdline *cl, void *data)
{
	struct host *host = port_host(parsed);

	(void)cl;
	(void)data;
	if (host != NULL)
		clear_one(host);
}

cmdline_parse_inst_t cmd_clear = {.f = do_clear,
	.help_str = "clear: reset the counters of `show`",
	.tokens = {(void *)&word_clear, NULL}};

cmdline_parse_inst_t cmd_clear_all = {.f = do_clear,
	.help_str = "clear port stats all: the same",
	.tokens = {(void *)&word_clear, (void *)&word_port, (void *)&word_stats,
		(void *)&word_all, NULL}};

cmdline_parse_inst_t cmd_clear_port = {.f = do_clear_port,
	.help_str = "clear port stats N: reset those of port N",
	.tokens = {(void *)&word_clear, (void *)&word_port, (void *)&word_stats,
		(void *)&word_number, NULL}};

static void
do_show(void *parsed, struct cmdline *cl, void *data)
{
	static const char *const names[] = {
		"port", "engine", "qp", "srq", "cq", "mr", "neigh", "peer"};
	const struct words *words = parsed;
	bool all = data != NULL && strcmp(words->c, "all") == 0;

	(void)cl;
	for (unsigned what = 0; what < sizeof(names) / sizeof(names[0]); what++) {
		if (strcmp(words->b, names[what]) != 0)
			continue;
		for (unsigned i = 0; i < the_run->n_hosts; i++)
			show_host(&the_run->hosts[i], (enum show_what)what, all);
	}
}

cmdline_parse_inst_t cmd_show = {.f = do_show,
	.help_str = "show WHAT: state and counters",
	.tokens = {(void *)&word_show, (void *)&word_what, NULL}};

cmdline_parse_inst_t cmd_show_how = {.f = do_show,
	.data = (void *)1,
	.help_str = "show WHAT stats|all: counters",
	.tokens = {(void *)&word_show, (void *)&word_what, (void *)&word_how, NULL}};

/* As dpdk-testpmd has it: the last word says that all ports are meant, as ever here. */
cmdline_parse_inst_t cmd_show_all = {.f = do_show,
	.data = (void *)1,
	.help_str = "show WHAT stats|info all: state and counters that are not 0",
	.tokens = {(void *)&word_show, (void *)&word_what, (void *)&word_how,
		(void *)&word_all, NULL}};

static void
do_show_port(void *parsed, struct cmdline *cl, void *data)
{
	struct host *host = port_host(parsed);

	(void)cl;
	(void)data;
	if (host != NULL)
		show_host(host, SHOW_PORT, false);
}

cmdline_parse_inst_t cmd_show_port = {.f = do_show_port,
	.help_str = "show port stats|info N: state and counters of port N",
	.tokens = {(void *)&word_show, (void *)&word_port, (void *)&word_stats_info,
		(void *)&word_number, NULL}};

static void
do_show_events(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *words = parsed;

	(void)cl;
	(void)data;
	for (unsigned i = 0; i < the_run->n_hosts; i++) {
		struct host *host = &the_run->hosts[i];

		if (words->number >= host->conf->qps)
			command_failed("show: port %" PRIu64 " has QPs 0 to %" PRIu64
				       ", not %" PRIu32,
				host->pc->port, host->conf->qps - 1, words->number);
		else if (!show_qp_events(host, words->number))
			command_failed("show: %s", rocade_error());
	}
}

cmdline_parse_inst_t cmd_show_events = {.f = do_show_events,
	.help_str = "show qp N events: the last events of a QP",
	.tokens = {(void *)&word_show, (void *)&word_qp, (void *)&word_number,
		(void *)&word_events, NULL}};
