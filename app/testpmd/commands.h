/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: rte_cmdline on a terminal, the same commands from a pipe or a file.
 */
#ifndef TESTPMD_COMMANDS_H
#define TESTPMD_COMMANDS_H

#include <cmdline_parse.h>

#include "run.h"

/* 0, or -1 with the sentence printed. Before any other. */
int commands_open(struct run *run);
void commands_close(void);
/* Runs every line; 0, or -1 when one was wrong (the rest is left out) and said so. */
int commands_run_file(const char *path);
/* For run->poll_commands: what has been typed. */
void commands_poll(struct run *run);

/* What a command is called with. */
extern struct run *the_run;

/* A command that failed: the sentence on stderr; a file of commands ends there. */
void command_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cmd_*.c */
extern cmdline_parse_inst_t cmd_help, cmd_start, cmd_stop, cmd_quit, cmd_wait, cmd_wait_s,
	cmd_clear, cmd_show, cmd_show_how, cmd_set, cmd_set_port, cmd_set_srq,
	cmd_set_impair, cmd_listen, cmd_connect;

/* show.c */
enum show_what {
	SHOW_PORT,
	SHOW_ENGINE,
	SHOW_QP,
	SHOW_SRQ,
	SHOW_CQ,
	SHOW_MR,
	SHOW_NEIGH
};
void show(struct host *host, enum show_what what, bool all);

#endif
