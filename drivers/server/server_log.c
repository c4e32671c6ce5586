/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's log: standard error. The thread that moves packets logs too. So a line
 * that standard error does not take at once is lost, and the daemon goes on.
 *
 * O_NONBLOCK belongs to the open file description, which the daemon shares with the shell
 * that has started it. So the daemon opens a pipe or terminal again, for one of its own.
 */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "base/base_log.h"
#include "server/server_log.h"
#include "verbs/export.h"

#define LINE_BYTES 600 /* priority, name, text of base_log.c, newline */

static enum log_level max_level = LOG_LEVEL_WARN;
static bool journal; /* the journal expects a priority before each line: sd-daemon(3) */

/* How standard error is written to without waiting. */
enum log_way {
	LOG_FILE,   /* write(): a file always has room */
	LOG_SOCKET, /* MSG_DONTWAIT */
	LOG_OWN,    /* opened again, with O_NONBLOCK */
	LOG_POLLED, /* could not be opened again: poll() tells whether there is room */
};

static struct {
	pthread_mutex_t lock; /* EAL's threads log too */
	enum log_way way;
	int fd; /* -1: none yet */
	dev_t dev;
	ino_t ino;
	bool cut; /* the last line was written in part */
	uint64_t lost;
	uint64_t told; /* how many of them the log has reported */
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Chooses how to write to standard error, unless it is the same file as before. */
static void
out_open(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) != 0 ||
		(out.fd >= 0 && out.dev == st.st_dev && out.ino == st.st_ino))
		return;
	if (out.way == LOG_OWN)
		close(out.fd);
	out.dev = st.st_dev;
	out.ino = st.st_ino;
	out.cut = false;
	out.fd = STDERR_FILENO;
	out.way = S_ISSOCK(st.st_mode)  ? LOG_SOCKET
		  : S_ISREG(st.st_mode) ? LOG_FILE
					: LOG_POLLED;
	if (out.way == LOG_POLLED) {
		int fd = open("/proc/self/fd/2",
			O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		if (fd >= 0) {
			out.fd = fd;
			out.way = LOG_OWN;
		}
	}
}

/* Returns how many bytes were written, at most 0 if there is no room. */
static ssize_t
out_write(const char *text, size_t size)
{
	struct pollfd room = {.fd = out.fd, .events = POLLOUT};

	if (out.way == LOG_SOCKET)
		return send(out.fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (out.way == LOG_POLLED && poll(&room, 1, 0) != 1)
		return 0;
	return write(out.fd, text, size);
}

/* Writes a line with its newline, or counts it as lost. */
static bool
out_put(const char *line)
{
	size_t size = strlen(line);
	ssize_t wrote;

	if (out.cut && out_write("\n", 1) != 1)
		return false;
	out.cut = false;
	wrote = out_write(line, size);
	out.cut = wrote > 0 && (size_t)wrote < size;
	return wrote == (ssize_t)size;
}

static void
line_put(int priority, const char *kind, const char *text)
{
	char line[LINE_BYTES], lost[LINE_BYTES];
	char head[24] = "rocaded: ";

	if (journal)
		snprintf(head, sizeof(head), "<%d>", priority);
	snprintf(line, sizeof(line) - 1, "%s%s%s", head, journal ? "" : kind, text);
	strcat(line, "\n");
	pthread_mutex_lock(&out.lock);
	if (out.lost != out.told) {
		snprintf(lost, sizeof(lost), "%s%" PRIu64 " lines of the log were lost\n",
			head, out.lost - out.told);
		if (out_put(lost))
			out.told = out.lost;
	}
	if (out.lost != out.told || !out_put(line))
		out.lost++;
	pthread_mutex_unlock(&out.lock);
}

static void
line_write(enum log_level level, const char *line, void *arg)
{
	static const char *const names[] = {"error: ", "warning: ", "", ""};
	static const int priorities[] = {3, 4, 6, 7};

	(void)arg;
	if (level <= max_level)
		line_put(priorities[level], names[level], line);
}

static_assert((int)ROCADE_LOG_DEBUG == (int)LOG_LEVEL_DEBUG &&
		      (int)ROCADE_LOG_ERROR == (int)LOG_LEVEL_ERR,
	"same values");

EXPORT void
rocade_daemon_log(enum rocade_daemon_log level)
{
	pthread_mutex_lock(&out.lock);
	out_open();
	pthread_mutex_unlock(&out.lock);
	max_level = (enum log_level)level;
	journal = getenv("JOURNAL_STREAM") != NULL;
	log_set_sink(line_write, NULL);
}

EXPORT void
rocade_daemon_notice(const char *format, ...)
{
	char text[LINE_BYTES - 32];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line_put(5, "", text);
}

uint64_t
server_log_lost(void)
{
	uint64_t lost;

	pthread_mutex_lock(&out.lock);
	lost = out.lost;
	pthread_mutex_unlock(&out.lock);
	return lost;
}
