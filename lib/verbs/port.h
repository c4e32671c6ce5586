/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open port as rocade.h shows it: a device with its engines and its entry in the device
 * list. Drivers open their port, and hand it over here.
 */
#ifndef ROCADE_VERBS_PORT_H
#define ROCADE_VERBS_PORT_H

#include <pthread.h>

#include "engine/engine.h"
#include "verbs/error.h"
#include "verbs/export.h"

#define VERBS_MAX_PD 65536

struct impair; /* drivers/impair */
struct xrc_domain;
struct device_source;

struct rocade_engine {
	struct engine *engine;
	struct rocade_port *port;
	struct impair *impair; /* around its receive queue, NULL: none */
	struct port_queue inner; /* the queue that impair is around */
	bool launched;
	unsigned lcore; /* while launched */
};

struct rocade_port {
	struct rocade_port *next; /* in the list of open ports */
	struct dev *dev;
	struct verbs_device *device;
	const struct device_source *source; /* NULL: opened and closed by rocade.h's calls */
	pthread_mutex_t lock; /* the members below */
	uint32_t contexts;    /* open */
	uint32_t launched;    /* engines that an lcore runs */
	uint32_t next_srqn;
	LIST_HEAD(, xrc_domain) xrc_domains; /* that were opened by a file */
	void (*on_close)(struct rocade_port *port); /* NULL, or drivers/impair's */
	uint64_t pd_used[VERBS_MAX_PD / 64]; /* a bit a protection domain */
	unsigned engine_count;
	struct rocade_engine engines[DEV_MAX_ENGINES];
};

/*
 * Checks conf and turns it into what the core takes, with the defaults filled in where they do
 * not depend on the port (mtu may still be 0). *out_conf: a whole structure, also where the
 * caller's was shorter. 0 or an errno value with its sentence.
 */
int port_conf_read(const struct rocade_port_conf *conf, struct rocade_port_conf *out_conf,
	struct dev_conf *out);

/* Addresses and gateways, each where it is not NULL; the rest of net stays. */
int port_net_read(const char *addresses, const char *gateway4, const char *gateway6,
	struct net_conf *net);

/* Puts a port under its device, into the device list. Takes dev over; on failure (an errno
 * value with its sentence) dev is the caller's still. */
int port_publish(struct dev *dev, struct rocade_port **out);

/* Fills in a free name where conf has none. EEXIST with its sentence. */
int port_name_choose(struct dev_conf *conf);

#endif
