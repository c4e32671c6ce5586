/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of a device: on its QP 1, driven by its engines. Between lock
 * and unlock the calls of cm.h may be made, from any thread but an engine's with its gate
 * held.
 */
#ifndef ROCADE_CM_PORT_H
#define ROCADE_CM_PORT_H

#include "cm/cm.h"
#include "engine/dev.h"

struct cm_port;

/* conf: its ca_guid is the device's. now: the engines' (engine_clock()). -EBUSY: the
 * device has one; -EOPNOTSUPP: it is a client's of a daemon; -EINVAL, -ENOMEM. */
int
cm_port_open(
	struct dev *dev, const struct cm_conf *conf, uint64_t now, struct cm_port **out);
/* Connections that are open end without a word. */
void
cm_port_close(struct cm_port *port);

/* Once there are events, the lock held: wake is called, and not again before
 * cm_port_awake(); then at once if there are some. */
void
cm_port_wake(struct cm_port *port, void (*wake)(void *arg), void *arg);
void
cm_port_awake(struct cm_port *port);

struct cm *
cm_port_lock(struct cm_port *port);
void
cm_port_unlock(struct cm_port *port);

#endif
