/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the daemon's socket is. */
#ifndef ROCADE_SWITCH_SOCKET_H
#define ROCADE_SWITCH_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/common.h"

#define SW_SOCKET_ENV "ROCADE_SOCKET"
#define SW_SOCKET_RUN "/run/rocade.sock"

/*
 * What the daemon makes and a client looks for when it is not told: $ROCADE_SOCKET, else
 * SW_SOCKET_RUN for root and $XDG_RUNTIME_DIR/rocade.sock for others (a client of theirs
 * takes SW_SOCKET_RUN where that does not exist). -EINVAL: too long for a socket;
 * -ENOENT: nothing says where.
 */
int
sw_socket_path(const char *given, bool client, struct sockaddr_un *addr);

#endif
