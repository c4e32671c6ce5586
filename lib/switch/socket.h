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
 * Sets addr to the path that the daemon binds or a client connects to: `given`, if it is
 * not empty; else $ROCADE_SOCKET; else SW_SOCKET_RUN for root and
 * $XDG_RUNTIME_DIR/rocade.sock for other users. A client that is not root uses
 * SW_SOCKET_RUN if that file does not exist or the variable is not set. Returns 0,
 * -EINVAL (too long for a socket address) or -ENOENT (for a daemon that is not root:
 * neither variable is set).
 */
int sw_socket_path(const char *given, bool client, struct sockaddr_un *addr);

#endif
