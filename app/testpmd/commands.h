/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: rte_cmdline on a terminal, the same commands from a pipe or a
 * file. */
#ifndef TESTPMD_COMMANDS_H
#define TESTPMD_COMMANDS_H

#include <cmdline_parse.h>

#include "run.h"

/* Returns 0, or -1 after printing an error. Call it before the others. */
int commands_open(struct run *run);
void commands_close(void);
/* Runs every line of a file. Returns 0, or -1 at the first command that fails, which has
 * printed an error; the rest is skipped. */
int commands_run_file(const char *path);
/* For run->poll_commands: runs the commands typed so far. */
void commands_poll(struct run *run);

/* Before and after a command waits. Meanwhile ^C on a terminal is SIGINT; at the prompt it clears the
 * line. */
void commands_wait_begin(void);
void commands_wait_end(void);

/* The run that commands act on. */
extern struct run *the_run;

/* Prints the error of a command to stderr. A file of commands ends there. */
void command_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cmd_wrong.c: prints what is wrong with the arguments of a command, and what is valid. Returns false if it
 * does not know the command. */
bool command_explain(const char *line);

/* cmd_*.c */
extern cmdline_parse_inst_t cmd_help, cmd_help_topic, cmd_clear_all, cmd_show_all,
	cmd_clear_port, cmd_show_port, cmd_start, cmd_stop, cmd_quit, cmd_wait,
	cmd_wait_s, cmd_clear, cmd_show, cmd_show_how, cmd_show_events, cmd_set,
	cmd_set_port, cmd_set_srq, cmd_set_impair, cmd_set_dump, cmd_listen, cmd_connect;

/* show.c */
enum show_what {
	SHOW_PORT,
	SHOW_ENGINE,
	SHOW_QP,
	SHOW_SRQ,
	SHOW_CQ,
	SHOW_MR,
	SHOW_NEIGH,
	SHOW_PEER
};
void show_host(struct host *head, enum show_what what, bool all);
/* Prints the record of the port's QP with this index. Returns false if there is none, and
 * rocade_error() says why, or the port has no such QP. */
bool show_qp_events(struct host *host, uint32_t index);

#endif
