/* SPDX-License-Identifier: BSD-3-Clause */
/* An open port, the struct rocade_port of rocade.h: a device with its engines and its
 * entry in the device list. A driver opens its port and passes the device to
 * port_publish(). */
#ifndef ROCADE_VERBS_VERBS_PORT_H
#define ROCADE_VERBS_VERBS_PORT_H

#include <pthread.h>

#include "verbs/device_facts.h"
#include "engine/engine.h"
#include "verbs/export.h"

#define VERBS_MAX_PD 65536
#define VERBS_MAX_CQ 65536
#define VERBS_MAX_SRQ 65536
#define VERBS_MAX_COMP_CNTR 65536

struct impair;    /* port/impair.h */
struct port_dump; /* drivers/dump */
struct xrc_domain;
struct pd_core;
struct device_source;
struct verbs_device;
struct verbs_ctx;

struct rocade_engine {
	struct engine *engine;
	struct rocade_port *port;
	struct impair *impair; /* installed on the engine's queue; NULL: none */
	struct port_queue
		inner; /* the queue that impair wraps; with a dump its wrapper */
	bool launched;
	unsigned lcore; /* while launched */
};

struct rocade_port {
	struct rocade_port *next; /* list of open ports */
	struct dev *dev;
	struct verbs_device *device;
	/* NULL: opened and closed by the functions of rocade.h */
	const struct device_source *source;
	pthread_mutex_t lock;                /* protects the members below */
	uint32_t contexts;                   /* number of open contexts */
	uint32_t launched;                   /* number of engines that an lcore runs */
	LIST_HEAD(, xrc_domain) xrc_domains; /* opened with a file */
	/* called by rocade_close_port() when it can no longer fail; NULL: nothing to
	 * do */
	void (*on_close)(struct rocade_port *port);
	struct port_dump *dump;                       /* rocade_port_dump(); NULL: none */
	void (*dump_close)(struct rocade_port *port); /* before on_close; NULL as there */
	uint32_t cqs, srqs, comp_cntrs;               /* that exist */
	LIST_HEAD(, pd_core) pds;
	LIST_HEAD(, dm_core) dms;
	uint32_t next_dm;                    /* number of the next device memory */
	uint64_t pd_used[VERBS_MAX_PD / 64]; /* bit per protection domain */
	unsigned engine_count;
	struct rocade_engine engines[DEV_MAX_ENGINES];
};

/* port_impair.c: asks for each sent frame what happens to it (port/impair.h). choose NULL: only wraps the queues, so that
 * port_link_cut() has an effect. Returns 0 or ENOMEM. */
struct impair_effect;
struct pkt;
int port_impair_choose(struct rocade_port *port,
	void (*choose)(void *arg, const struct pkt *pkt, struct impair_effect *effect),
	void *arg);
/* Cuts the link of the port, or makes it whole again: its link goes down or up. One call at a time. */
void port_link_cut(struct rocade_port *port, bool cut);

/*
 * Checks conf and converts it to a struct dev_conf, with defaults where they do not
 * depend on the port (mtu may still be 0). *out_conf: a copy with defaults. Returns 0 or
 * an errno value with its text for rocade_error().
 */
int port_conf_read(const struct rocade_port_conf *conf, struct rocade_port_conf *out_conf,
	struct dev_conf *out);

/* A structure that programs pass in, and that may grow. */
struct conf_kind {
	const char *type;   /* its name in texts */
	const char *within; /* what stands before the name of a member in texts, or "" */
	size_t known;       /* sizeof() in this release */
	size_t least;       /* and in the first one */
};

/* The sizeof() of a structure whose last member is this one. */
#define SIZE_UP_TO(type, member)                                                         \
	RTE_ALIGN_CEIL(                                                                  \
		offsetof(type, member) + sizeof(((type *)NULL)->member), _Alignof(type))
/* last: the last member that the structure has in the first release. */
#define CONF_KIND_WITHIN(prefix, structure, last)                                        \
	(&(const struct conf_kind){.type = #structure,                                   \
		.within = (prefix),                                                      \
		.known = sizeof(structure),                                              \
		.least = SIZE_UP_TO(structure, last)})
#define CONF_KIND(structure, last) CONF_KIND_WITHIN("", structure, last)

/* Checks that a program can have such a structure of this size: EINVAL with its text if not. */
int conf_size_check(const struct conf_kind *kind, size_t size);
/*
 * Copies a structure of the program, which has `size` bytes there, to one of this release
 * (docs/embedding.md, "API and ABI"). Members that a program of an earlier release does not have are 0.
 * A later program is accepted if it sets no member that is unknown here. Returns 0, or EINVAL with its
 * text.
 */
int conf_take(const struct conf_kind *kind, void *out, const void *conf, size_t size);
extern const struct conf_kind *const port_conf_kind;

/* Converts the congestion control of a port; NULL: *out stays. Returns 0 or EINVAL with its text. */
int port_cc_read(const struct rocade_cc_conf *given, struct cc_conf *out);

/* Converts addresses and gateways, each if it is not NULL; leaves the rest of net
 * unchanged. Returns 0 or EINVAL with its text. */
int port_net_read(const char *addresses, const char *gateway4, const char *gateway6,
	struct net_conf *net);

/* Adds dev to the device list as a port, and takes ownership of it. On failure (an errno
 * value with its text) dev stays the caller's. */
int port_publish(struct dev *dev, struct rocade_port **out);

/* Chooses a free name if conf has none. port_publish() checks the name again. EEXIST,
 * with its text: the name is in use. */
int port_name_choose(struct dev_conf *conf);

/* Makes a port without an entry in the device list; NULL: no memory. */
struct rocade_port *port_wrap(struct dev *dev);
/* Makes an entry that is in no list, for device_source.c. index: that of ibv_get_device_index(). */
struct verbs_device *device_create_unlisted(const char *name, int index);

/* What a driver learns of the ports that are opened by the functions of rocade.h. Called without
 * a lock. */
struct port_watch {
	/* Before the port is listed. A failure, -errno, fails the opening. */
	int (*opened)(struct rocade_port *port);
	/* The port has no context and cannot get one any more, or could not be listed. */
	void (*closing)(struct rocade_port *port);
	void (*addressed)(struct rocade_port *port); /* its addresses have changed */
	/* Returns whether librocade-rdmacm is in the process. librdmacm keeps a context of each
	 * device that it has found. So contexts without objects do not prevent then that the port
	 * is closed, and are closed later. */
	bool (*rdmacm_loaded)(void);
};

/* Once, before main(). */
void port_watch_set(const struct port_watch *watch);
/* Reports new addresses. */
void port_addresses_changed(struct rocade_port *port);
/* Returns whether a port is open, and librdmacm cannot use it. */
bool port_rdmacm_missing(void);
/* Returns whether a port with this name is open. */
bool port_is_open(const char *name);

/* ---- device.c, for context.c ---- */

/* Counts a context of the device's port, which then cannot be closed. Returns 0 or an errno value,
 * ENODEV if the port is closed. */
int device_context_add(struct ibv_device *device, struct rocade_port **port);
void device_context_remove(struct rocade_port *port);

/* ---- For device_source.c ---- */

/* Around fork(). */
void port_list_fork_prepare(void);
void port_list_fork_done(void);

/* ---- For device.c ---- */

/* Returns the number of open ports. */
unsigned port_count(void);
/* Returns whether there is an open port with this index, and its state. */
bool port_facts(unsigned index, struct device_facts *out);
/* Returns up to max devices, each with a reference that port_device_put() releases. */
unsigned port_devices_get(struct ibv_device **list, unsigned max);
void port_device_put(struct verbs_device *device);
/* Count the contexts of the device's port. port_context_add() returns NULL if the port is
 * closed. */
struct rocade_port *port_context_add(struct verbs_device *device);
void port_context_remove(struct rocade_port *port);
/* Takes a context from its port, or from the device if another thread has closed the port. */
void port_context_end(struct verbs_ctx *ctx);
/* That of ibv_get_device_index(). */
int port_device_index(const struct verbs_device *device);
/* Host order. */
uint64_t port_device_guid(const struct verbs_device *device);

#endif
