/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration as a switch and its port. Only server.c calls these. They set the
 * error text. */
#ifndef ROCADE_SERVER_CONF_H
#define ROCADE_SERVER_CONF_H

#include "server/server.h"

int switch_create(struct rocade_daemon *d, const struct rocade_daemon_conf *conf);
/* Sets the limits of what users may hold. */
void account_limits_set(struct rocade_daemon *d);
/* Takes ownership of the port on success. */
int port_attach(struct rocade_daemon *d, struct rocade_daemon_port *port);

#endif
