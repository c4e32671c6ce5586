/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager of a device: uses its QP 1, polled by its engines. The calls of
 * cm_core.h are allowed between cm_port_lock() and cm_port_unlock(). The engines take
 * this lock with the engine lock held. So a thread that holds it must not take an engine
 * lock. */
#ifndef ROCADE_CM_CM_PORT_H
#define ROCADE_CM_CM_PORT_H

#include "cm/cm_core.h"
#include "engine/dev.h"

struct cm_port;

/* Replaces conf->ca_guid by the device's GUID. now: engine_clock(). Returns 0, -EBUSY
 * (the device has a connection manager already), -EOPNOTSUPP (the device is a client of
 * the daemon), -EINVAL or -ENOMEM. */
int cm_port_open(
	struct dev *dev, const struct cm_conf *conf, uint64_t now, struct cm_port **out);
/* Open connections end without a message. */
void cm_port_close(struct cm_port *port);

/* Sets a callback that is called, with the lock held, when there are events. It is called
 * again only after cm_port_rearm(). cm_port_rearm() calls it at once if there are
 * events. */
void cm_port_set_wake(struct cm_port *port, void (*wake)(void *arg), void *arg);
void cm_port_rearm(struct cm_port *port);

struct cm *cm_port_lock(struct cm_port *port);
void cm_port_unlock(struct cm_port *port);

#endif
