/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_device_name(): the name of the daemon's device. */
#include <errno.h>
#include <string.h>

#include <rocade/status.h>

#include "shm/session.h"
#include "switch/socket.h"
#include "verbs/error.h"

int
rocade_device_name(const char *socket, char name[ROCADE_NAME_MAX])
{
	struct sw_device device;
	struct sockaddr_un addr;
	struct session s;
	int rc = sw_socket_path(socket, true, &addr);

	if (rc != 0)
		return rocade_fail(-rc, "socket: path too long");
	rc = session_open(&s, socket);
	if (rc == 0) {
		rc = session_device(&s, &device);
		session_close(&s);
	}
	if (rc != 0)
		return rocade_fail(
			-rc, "no daemon answers at %s: %s", addr.sun_path, strerror(-rc));
	memcpy(name, device.name, ROCADE_NAME_MAX);
	return 0;
}
