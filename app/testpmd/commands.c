/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_socket.h>

#include "commands.h"

struct run *the_run;

static cmdline_parse_ctx_t commands[] = {&cmd_help, &cmd_help_topic, &cmd_clear_all,
	&cmd_show_all, &cmd_clear_port, &cmd_show_port, &cmd_start, &cmd_stop, &cmd_quit,
	&cmd_wait, &cmd_wait_s, &cmd_clear, &cmd_show, &cmd_show_how, &cmd_show_events,
	&cmd_set_srq, &cmd_set_impair, &cmd_set_dump, &cmd_set_port, &cmd_set,
	&cmd_listen, &cmd_connect, NULL};

/* On a terminal cl reads the input, with completion and history. Otherwise this file
 * reads the lines, and cl only parses them. */
static struct cmdline *cl;
static bool terminal;
static bool command_has_failed; /* the command that is being run has failed */

#define LINE_LEN_MAX 4095

struct line_reader {
	char text[LINE_LEN_MAX + 1];
	size_t len;
	bool skips; /* the rest of a line that is too long */
};
static struct line_reader input;

void
command_failed(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	command_has_failed = true;
}

int
commands_open(struct run *run)
{
	the_run = run;
	run->commands_fd = STDIN_FILENO;
	terminal = run->conf.interactive && isatty(STDIN_FILENO);
	if (terminal)
		cl = cmdline_stdin_new(commands, PROGRAM "> ");
	else
		cl = cmdline_new(commands, "", -1, -1);
	if (cl == NULL) {
		fprintf(stderr, "cannot create the command line: out of memory\n");
		return -1;
	}
	return 0;
}

void
commands_close(void)
{
	if (cl != NULL && terminal)
		cmdline_stdin_exit(cl);
	else if (cl != NULL)
		cmdline_free(cl);
	cl = NULL;
}

static void
terminal_signals_set(bool on)
{
	struct termios mode;

	if (!terminal || tcgetattr(STDIN_FILENO, &mode) != 0)
		return;
	mode.c_lflag = on ? mode.c_lflag | ISIG : mode.c_lflag & ~(tcflag_t)ISIG;
	tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

void
commands_wait_begin(void)
{
	terminal_signals_set(true);
}

void
commands_wait_end(void)
{
	terminal_signals_set(false);
}

static void
line_too_long(void)
{
	command_failed(
		"input line too long: expected at most %d characters", LINE_LEN_MAX);
}

/* line has no newline. Returns 0, or -1 after printing an error. */
static int
run_line(const char *line)
{
	char buf[LINE_LEN_MAX + 2];

	if (strlen(line) > LINE_LEN_MAX) {
		line_too_long();
		return -1;
	}
	snprintf(buf, sizeof(buf), "%s\n", line);
	command_has_failed = false;
	cores_hold(the_run);
	switch (cmdline_parse(cl, buf)) {
	case CMDLINE_PARSE_AMBIGUOUS:
		command_failed("ambiguous command '%s' (see `help`)", line);
		break;
	case CMDLINE_PARSE_NOMATCH:
		command_failed("unknown command '%s' (see `help`)", line);
		break;
	case CMDLINE_PARSE_BAD_ARGS:
		if (!command_explain(line))
			command_failed("invalid arguments in '%s' (see `help`)", line);
		break;
	}
	fflush(stdout);
	return command_has_failed ? -1 : 0;
}

int
commands_run_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (file == NULL) {
		fprintf(stderr, "cannot read --cmdline-file '%s': %s\n", path,
			strerror(errno));
		return -1;
	}
	while (rc == 0 && !the_run->quit && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		printf("%s> %s\n", PROGRAM, line);
		rc = run_line(line);
	}
	free(line);
	fclose(file);
	return rc;
}

/* Takes the next line out of the input. At the end of the input the last one needs no newline. */
static bool
line_take(char line[sizeof(input.text) + 1], bool end)
{
	const char *newline = memchr(input.text, '\n', input.len);
	size_t len = newline != NULL ? (size_t)(newline - input.text) : input.len;
	size_t taken = len + (newline != NULL);

	if (newline == NULL && (!end || len == 0))
		return false;
	memcpy(line, input.text, len);
	line[len] = '\0';
	line[strcspn(line, "\r")] = '\0';
	input.len -= taken;
	memmove(input.text, input.text + taken, input.len);
	return true;
}

/* Runs the lines of the input. At the end of the input the program stops. Only a run with --count or
 * --duration still goes on to its end. */
static void
run_input(struct run *run)
{
	char line[sizeof(input.text) + 1];

	while (!run->quit && line_take(line, run->commands_fd < 0)) {
		if (!input.skips)
			run_line(line);
		input.skips = false;
	}
	if (run->commands_fd < 0 && !run->quit) {
		bool ends = run->conf.count != 0 || run->conf.duration_s != 0;

		if (!run->active || !ends) {
			run_stop(run);
			run->quit = true;
		}
	}
}

static void
read_input(struct run *run)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

	if (run->commands_fd < 0 || poll(&fd, 1, 0) <= 0)
		return;
	if (input.len == sizeof(input.text)) {
		if (!input.skips)
			line_too_long();
		input.skips = true;
		input.len = 0;
	}
	ssize_t n = read(
		STDIN_FILENO, input.text + input.len, sizeof(input.text) - input.len);

	if (n > 0)
		input.len += (size_t)n;
	else if (n == 0 || errno != EINTR)
		run->commands_fd = -1;
}

/* Reads what has been typed (DPDK 23.11 removed cmdline_poll()). Returns false on ^D or if the
 * terminal is gone. */
static bool
read_terminal(struct run *run)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t n;
	char c;

	while (!run->quit && poll(&fd, 1, 0) > 0) {
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return true;
		if (n == 1 && (c == '\r' || c == '\n'))
			cores_hold(run); /* it runs a command */
		if (n != 1 || cmdline_in(cl, &c, 1) < 0)
			return false;
	}
	return true;
}

void
commands_poll(struct run *run)
{
	if (!terminal) {
		read_input(run);
		run_input(run);
		return;
	}
	if (!read_terminal(run)) {
		run_stop(run);
		run->quit = true;
	}
	fflush(stdout);
}
