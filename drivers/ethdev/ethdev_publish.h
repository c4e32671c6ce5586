/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. From a port of an ethdev driver to a verbs device. */
#ifndef ROCADE_ETHDEV_ETHDEV_PUBLISH_H
#define ROCADE_ETHDEV_ETHDEV_PUBLISH_H

#include "port/port.h"
#include "verbs/verbs_port.h"

/* Creates the device of an open port, which is ethdev port port_id, and lists it. numa: 1 + the NUMA
 * node of its memory; 0: that of the port. Returns 0, or an errno value with its text for
 * rocade_error(); the port is closed then. */
int ethdev_publish(struct dev_conf *conf, const struct port *port, uint16_t port_id,
	uint32_t numa, struct rocade_port **out);

#endif
