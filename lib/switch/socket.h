/* SPDX-License-Identifier: BSD-3-Clause */
/* Path of the daemon's socket. */
#ifndef ROCADE_SWITCH_SOCKET_H
#define ROCADE_SWITCH_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/common.h"

#define SW_SOCKET_ENV "ROCADE_SOCKET"
#define SW_SOCKET_RUN "/run/rocade.sock"

/*
 * The path that the daemon binds and a client connects to if none is given:
 * $ROCADE_SOCKET, else SW_SOCKET_RUN for root and $XDG_RUNTIME_DIR/rocade.sock for other
 * users. (Their clients use SW_SOCKET_RUN if that file does not exist.) Returns 0,
 * -EINVAL (too long for a socket address) or -ENOENT (no variable is set).
 */
int
sw_socket_path(const char *given, bool client, struct sockaddr_un *addr);

#endif
