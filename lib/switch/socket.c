/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "switch/socket.h"

static int
path_set(struct sockaddr_un *addr, const char *dir, const char *name)
{
	int len = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s%s", dir, name);

	return len <= 0 || (size_t)len >= sizeof(addr->sun_path) ? -EINVAL : 0;
}

int
sw_socket_path(const char *given, bool client, struct sockaddr_un *addr)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int rc;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (given == NULL || given[0] == '\0')
		given = getenv(SW_SOCKET_ENV);
	if (given != NULL && given[0] != '\0')
		return path_set(addr, given, "");
	if (geteuid() == 0)
		return path_set(addr, SW_SOCKET_RUN, "");
	if (dir == NULL || dir[0] == '\0')
		return client ? path_set(addr, SW_SOCKET_RUN, "") : -ENOENT;
	rc = path_set(addr, dir, "/rocade.sock");
	if (rc == 0 && client && access(addr->sun_path, F_OK) != 0)
		rc = path_set(addr, SW_SOCKET_RUN, "");
	return rc;
}
