/* SPDX-License-Identifier: BSD-3-Clause */
/* --shared: this program plays an application that has ports of its own and lets Rocade use
 * them. It configures and starts the ethdev port, and frees the frames that are not Rocade's. */
#ifndef TESTPMD_APP_PORT_H
#define TESTPMD_APP_PORT_H

#include <rocade/shared.h>

#include "testpmd_conf.h"
#include "testpmd_parse.h"

struct app_port;

/* Starts the ethdev port and opens a device on it. Returns NULL, with err set, on failure. */
struct app_port *app_port_open(const struct conf *conf,
	const struct rocade_port_conf *port_conf, struct rocade_port **port,
	char err[ERR_MAX]);
/* Gives received frames to the engines, or fetches the exceptions. Returns their number. */
unsigned app_port_poll(struct app_port *app);
/* After rocade_close_port(). Stops and closes the ethdev port. NULL: nothing to do. */
void app_port_close(struct app_port *app);

#endif
