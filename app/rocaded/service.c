/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols of sd_notify(3) and sd_listen_fds(3), without libsystemd: a state
 * change is one datagram to a UNIX socket, and what the service manager passes is in the
 * environment. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <common/number.h>

#include "service.h"

#define LISTEN_FDS_START 3 /* sd_listen_fds(3) */

static int manager = -1;

/* Returns whether the variable is a number in 1..max. */
static bool
env_number(const char *name, uint64_t max, uint64_t *number)
{
	const char *text = getenv(name);

	return text != NULL && parse_number(text, 1, max, number);
}

/* A variable that names another process is not meant for this one. */
static bool
env_names_us(const char *name, bool missing)
{
	uint64_t pid;

	if (getenv(name) == NULL)
		return missing;
	return env_number(name, INT32_MAX, &pid) && pid == (uint64_t)getpid();
}

int
service_listen_fd(void)
{
	uint64_t count;
	bool passed = env_names_us("LISTEN_PID", false) &&
		      env_number("LISTEN_FDS", INT32_MAX, &count);

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!passed)
		return 0;
	return count == 1 ? LISTEN_FDS_START : -1;
}

uint64_t
service_connect(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	uint64_t us;
	size_t len;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
		(len = strlen(path)) >= sizeof(to.sun_path))
		return 0;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* an abstract address */
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Connected now: the system call filter forbids it later. */
	if (manager < 0 ||
		connect(manager, (const struct sockaddr *)&to,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) != 0) {
		if (manager >= 0)
			close(manager);
		manager = -1;
		return 0;
	}
	if (!env_names_us("WATCHDOG_PID", true) ||
		!env_number("WATCHDOG_USEC", INT64_MAX, &us))
		return 0;
	return us;
}

void
service_notify(const char *assignments)
{
	ssize_t sent;

	if (manager < 0)
		return;
	sent = send(manager, assignments, strlen(assignments), MSG_NOSIGNAL);
	(void)sent; /* full: the manager is behind, and there is nothing else to do */
}
