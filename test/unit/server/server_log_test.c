/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log: levels and destinations. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "base/base_log.h"
#include "case.h"
#include "server/server_log.h"

/* Logs a line of each level. text: what was written to standard error. */
static void
log_all_levels(enum rocade_daemon_log level, char *text, size_t size)
{
	int ends[2], err = dup(2);
	ssize_t len;

	assert_int_equal(pipe(ends), 0);
	fflush(stderr);
	dup2(ends[1], 2);
	rocade_daemon_log(level);
	log_err("one");
	log_warn("two");
	log_info("three");
	log_write(LOG_LEVEL_DEBUG, "four");
	fprintf(stderr, ".");
	fflush(stderr);
	dup2(err, 2);
	close(err);
	close(ends[1]);
	len = read(ends[0], text, size - 1);
	assert_true(len > 0);
	text[len] = '\0';
	close(ends[0]);
}

TEST(lines_up_to_the_level)
{
	char text[256];

	unsetenv("JOURNAL_STREAM");
	log_all_levels(ROCADE_LOG_ERROR, text, sizeof(text));
	assert_string_equal(text, "rocaded: error: one\n.");
	log_all_levels(ROCADE_LOG_WARNING, text, sizeof(text));
	assert_string_equal(text, "rocaded: error: one\nrocaded: warning: two\n.");
	log_all_levels(ROCADE_LOG_DEBUG, text, sizeof(text));
	assert_non_null(strstr(text, "rocaded: three\nrocaded: four\n."));
}

TEST(journal_lines_have_priorities)
{
	char text[256];

	setenv("JOURNAL_STREAM", "8:12345", 1);
	log_all_levels(ROCADE_LOG_DEBUG, text, sizeof(text));
	assert_string_equal(text, "<3>one\n<4>two\n<6>three\n<7>four\n.");
	unsetenv("JOURNAL_STREAM");
}

#define MANY 100

/* Standard error becomes `fd`. Returns a copy of what it was. */
static int
stderr_replace(int fd)
{
	int before = dup(2);

	assert_true(before >= 0);
	assert_int_equal(dup2(fd, 2), 2);
	return before;
}

static void
stderr_restore(int before)
{
	assert_int_equal(dup2(before, 2), 2);
	close(before);
	rocade_daemon_log(ROCADE_LOG_WARNING);
}

/* Reads all that there is. */
static void
end_read(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	while (len < size - 1 &&
		(got = recv(fd, text + len, size - 1 - len, MSG_DONTWAIT)) > 0)
		len += (size_t)got;
	while (len < size - 1 && (got = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
}

/* Logs until the writer's end is full, and MANY lines more. Then reads the other end, which does
 * not block, and logs one line. */
static void
full_then_read(int writer, int reader)
{
	static char text[1 << 20];
	uint64_t before = server_log_lost(), lost;
	unsigned lines = 0, found = 0;
	char want[80];
	int err = stderr_replace(writer);

	rocade_daemon_log(ROCADE_LOG_WARNING);
	while (server_log_lost() - before < MANY) {
		log_warn("line %06u, which is neither long nor short", lines++);
		if (lines > sizeof(text) / 20)
			break;
	}
	lost = server_log_lost() - before;
	end_read(reader, text, sizeof(text));
	for (const char *at = text; (at = strstr(at, "nor short\n")) != NULL; at++)
		found++;
	log_warn("the last line");
	end_read(reader, text, sizeof(text));
	rocade_daemon_notice("nothing is lost any more");
	stderr_restore(err);
	assert_int_equal(lost, MANY);
	assert_int_equal(found, lines - MANY);
	snprintf(want, sizeof(want), "rocaded: %u lines of the log were lost\n", MANY);
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "rocaded: warning: the last line\n"));
	end_read(reader, text, sizeof(text));
	assert_string_equal(text, "rocaded: nothing is lost any more\n");
	assert_int_equal(server_log_lost() - before, MANY);
}

TEST(full_pipe_loses_lines_and_blocks_nothing)
{
	int ends[2];

	assert_int_equal(pipe2(ends, 0), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	full_then_read(ends[1], ends[0]);
	/* Others who write to the pipe still wait. */
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(full_socket_loses_lines_and_blocks_nothing)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	full_then_read(ends[1], ends[0]);
	close(ends[0]);
	close(ends[1]);
}

/* As another user, who may not open the pipe again. */
TEST(full_pipe_of_another_user_blocks_nothing)
{
	int ends[2], status;
	pid_t child;

	if (geteuid() != 0)
		return;
	assert_int_equal(pipe2(ends, 0), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	child = fork();
	if (child == 0) {
		if (setresuid(65533, 65533, 65533) != 0)
			_exit(1);
		full_then_read(ends[1], ends[0]);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(file_takes_every_line)
{
	FILE *file = tmpfile();
	uint64_t before = server_log_lost();
	char text[64] = "";
	int err;

	assert_non_null(file);
	err = stderr_replace(fileno(file));
	rocade_daemon_log(ROCADE_LOG_WARNING);
	rocade_daemon_notice("number %d", 1);
	stderr_restore(err);
	assert_int_equal(pread(fileno(file), text, sizeof(text) - 1, 0), 18);
	assert_string_equal(text, "rocaded: number 1\n");
	assert_int_equal(server_log_lost(), before);
	fclose(file);
}
