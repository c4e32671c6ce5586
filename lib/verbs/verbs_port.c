/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of open ports: Rocade's part of the device list. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mr_fault.h"
#include "verbs/link_order.h"
#include "verbs/objects.h"
#include "verbs/forward.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rocade_port *ports; /* in the order they were opened */
static int next_index = 0x10000;  /* beyond the indices that a kernel assigns */
static const struct port_watch *watch;
/* Includes closed devices: a program that releases a device list with free() keeps its
 * references forever. The list makes that reachable memory for leak checkers. */
static struct verbs_device *devices;

void
port_list_fork_prepare(void)
{
	pthread_mutex_lock(&list_lock);
}

void
port_list_fork_done(void)
{
	pthread_mutex_unlock(&list_lock);
}

static bool
name_taken(const char *name)
{
	for (struct rocade_port *p = ports; p != NULL; p = p->next) {
		if (strcmp(p->dev->conf.name, name) == 0)
			return true;
	}
	return false;
}

void
port_watch_set(const struct port_watch *to)
{
	watch = to;
}

void
port_addresses_changed(struct rocade_port *port)
{
	if (watch != NULL)
		watch->addressed(port);
}

bool
port_rdmacm_missing(void)
{
	return watch != NULL && !watch->rdmacm_loaded() && port_count() != 0;
}

bool
port_is_open(const char *name)
{
	bool open;

	pthread_mutex_lock(&list_lock);
	open = name_taken(name);
	pthread_mutex_unlock(&list_lock);
	return open;
}

int
port_name_choose(struct dev_conf *conf)
{
	int err = link_order_check();

	if (err != 0)
		return err;
	pthread_mutex_lock(&list_lock);
	if (conf->name[0] != '\0') {
		if (name_taken(conf->name))
			err = rocade_fail(EEXIST, "name: a port \"%s\" is open already",
				conf->name);
	} else {
		for (unsigned i = 0; conf->name[0] == '\0' || name_taken(conf->name); i++)
			snprintf(conf->name, sizeof(conf->name), "rocade%u", i);
	}
	pthread_mutex_unlock(&list_lock);
	return err;
}

static struct verbs_device *
device_create(struct rocade_port *port, const char *name)
{
	struct verbs_device *device = calloc(1, sizeof(*device));

	if (device == NULL)
		return NULL;
	device_mark(&device->ibv);
	device->ibv.node_type = IBV_NODE_CA;
	device->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->ibv.name, sizeof(device->ibv.name), "%s", name);
	snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name), "%s", name);
	snprintf(device->ibv.dev_path, sizeof(device->ibv.dev_path),
		"/sys/class/infiniband_verbs/%s", name);
	snprintf(device->ibv.ibdev_path, sizeof(device->ibv.ibdev_path),
		"/sys/class/infiniband/%s", name);
	device->port = port;
	device->refs = 1;
	return device;
}

struct rocade_port *
port_wrap(struct dev *dev)
{
	struct rocade_port *port = calloc(1, sizeof(*port));

	if (port == NULL)
		return NULL;
	port->dev = dev;
	pthread_mutex_init(&port->lock, NULL);
	port->engine_count = dev->engine_count;
	for (unsigned i = 0; i < dev->engine_count; i++) {
		port->engines[i].engine = dev->engines[i];
		port->engines[i].port = port;
	}
	return port;
}

static void
device_put_locked(struct verbs_device *device)
{
	struct verbs_device **link = &devices;

	if (--device->refs != 0)
		return;
	while (*link != device)
		link = &(*link)->next;
	*link = device->next;
	free(device);
}

/* Adds the port to the list. EEXIST: its name is taken. */
static int
port_list(struct rocade_port *port)
{
	struct rocade_port **end = &ports;
	int err = 0;

	pthread_mutex_lock(&list_lock);
	if (name_taken(port->dev->conf.name)) {
		err = rocade_fail(EEXIST, "name: a port \"%s\" is open already",
			port->dev->conf.name);
	} else {
		port->device->next = devices;
		devices = port->device;
		while (*end != NULL)
			end = &(*end)->next;
		*end = port;
	}
	pthread_mutex_unlock(&list_lock);
	return err;
}

static void
port_unlist(struct rocade_port *port)
{
	struct rocade_port **link = &ports;

	while (*link != port)
		link = &(*link)->next;
	*link = port->next;
	port->device->port = NULL;
	device_put_locked(port->device);
}

static void
index_choose(struct verbs_device *device)
{
	pthread_mutex_lock(&list_lock);
	device->index = next_index++;
	pthread_mutex_unlock(&list_lock);
}

/* Tells the watch of the port before other threads can open a context of it. */
static int
port_announce(struct rocade_port *port)
{
	int err;

	index_choose(port->device);
	err = watch != NULL ? -watch->opened(port) : 0;
	if (err != 0)
		return rocade_fail(err, "%s: rdma_cm cannot use the port: %s",
			port->dev->conf.name, strerror(err));
	err = port_list(port);
	if (err != 0 && watch != NULL)
		watch->closing(port);
	return err;
}

int
port_publish(struct dev *dev, struct rocade_port **out)
{
	struct rocade_port *port = port_wrap(dev);
	int err;

	if (port != NULL)
		port->device = device_create(port, dev->conf.name);
	if (port == NULL || port->device == NULL) {
		free(port);
		return rocade_fail(ENOMEM, "no memory for a port");
	}
	err = port_announce(port);
	if (err != 0) {
		free(port->device);
		free(port);
		return err;
	}
	*out = port;
	return 0;
}

/* Returns whether no context of the port has an object. A context that another thread is opening
 * is counted, and has no listener yet. With the port's lock. */
static bool
contexts_idle(struct rocade_port *port)
{
	struct dev *dev = port->dev;
	struct dev_listener *listener;
	uint32_t listeners = 0;
	bool idle = true;

	pthread_mutex_lock(&dev->link_lock);
	LIST_FOREACH(listener, &dev->listeners, link)
	{
		const struct verbs_ctx *ctx = ctx_of_listener(listener);

		/* Pairs with the release in count_down(). */
		idle &= __atomic_load_n(&ctx->objects, __ATOMIC_ACQUIRE) == 0;
		listeners++;
	}
	pthread_mutex_unlock(&dev->link_lock);
	return idle && listeners == port->contexts;
}

/* Takes the contexts from the port. Each refers to the device instead. */
static void
contexts_take(struct rocade_port *port)
{
	struct dev_listener *listener;

	while ((listener = LIST_FIRST(&port->dev->listeners)) != NULL) {
		struct verbs_ctx *ctx = ctx_of_listener(listener);

		dev_unlisten(port->dev, listener);
		ctx->port = NULL;
		ctx->dev = NULL;
		port->device->refs++;
		port->contexts--;
		if (port->dev->conf.mr_fault_handler)
			mr_fault_put();
	}
}

/* Returns EBUSY if the port is in use. */
static int
port_use_check(struct rocade_port *port)
{
	bool kept = watch != NULL && watch->rdmacm_loaded() && contexts_idle(port);

	if (port->contexts != 0 && !kept)
		return rocade_fail(EBUSY, "%s: %u of its contexts are open",
			port->dev->conf.name, port->contexts);
	if (port->launched != 0)
		return rocade_fail(EBUSY,
			"%s: %u of its engines run on lcores: stop them first",
			port->dev->conf.name, port->launched);
	return 0;
}

/* Removes the port from the list, unless it is in use: EBUSY. */
static int
port_unpublish(struct rocade_port *port)
{
	int err;

	pthread_mutex_lock(&list_lock);
	pthread_mutex_lock(&port->lock);
	err = port_use_check(port);
	if (err == 0)
		contexts_take(port);
	pthread_mutex_unlock(&port->lock);
	if (err == 0)
		port_unlist(port);
	pthread_mutex_unlock(&list_lock);
	return err;
}

EXPORT int
rocade_close_port(struct rocade_port *port)
{
	int err;

	if (arg_missing("port", port))
		return EINVAL;
	err = port_unpublish(port);
	if (err != 0)
		return err;
	if (watch != NULL)
		watch->closing(port);
	if (port->dump_close != NULL)
		port->dump_close(port);
	if (port->on_close != NULL)
		port->on_close(port);
	dev_destroy(port->dev);
	pthread_mutex_destroy(&port->lock);
	free(port);
	return 0;
}

EXPORT struct ibv_device *
rocade_port_device(struct rocade_port *port)
{
	return arg_missing("port", port) ? NULL : &port->device->ibv;
}

unsigned
port_count(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&list_lock);
	for (struct rocade_port *p = ports; p != NULL; p = p->next)
		n++;
	pthread_mutex_unlock(&list_lock);
	return n;
}

bool
port_facts(unsigned index, struct device_facts *out)
{
	struct rocade_port *p;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&list_lock);
	for (p = ports; p != NULL && index > 0; p = p->next)
		index--;
	if (p != NULL) {
		struct port_stats stats;

		dev_stats(p->dev, &stats);
		snprintf(out->name, sizeof(out->name), "%s", p->dev->conf.name);
		out->guid = p->dev->guid;
		out->link_up = dev_link_up(p->dev);
		pthread_mutex_lock(&p->dev->lock);
		memcpy(out->gids, p->dev->gids, sizeof(out->gids));
		pthread_mutex_unlock(&p->dev->lock);
		out->tx_packets = stats.tx_packets;
		out->tx_bytes = stats.tx_bytes;
		out->rx_packets = stats.rx_packets;
		out->rx_bytes = stats.rx_bytes;
	}
	pthread_mutex_unlock(&list_lock);
	return p != NULL;
}

unsigned
port_devices_get(struct ibv_device **list, unsigned max)
{
	unsigned n = 0;

	pthread_mutex_lock(&list_lock);
	for (struct rocade_port *p = ports; p != NULL && n < max; p = p->next) {
		p->device->refs++;
		list[n++] = &p->device->ibv;
	}
	pthread_mutex_unlock(&list_lock);
	return n;
}

void
port_device_put(struct verbs_device *device)
{
	pthread_mutex_lock(&list_lock);
	device_put_locked(device);
	pthread_mutex_unlock(&list_lock);
}

struct rocade_port *
port_context_add(struct verbs_device *device)
{
	struct rocade_port *port;

	pthread_mutex_lock(&list_lock);
	port = device->port;
	if (port != NULL) {
		pthread_mutex_lock(&port->lock);
		port->contexts++;
		pthread_mutex_unlock(&port->lock);
		if (port->dev->conf.mr_fault_handler)
			mr_fault_get();
	}
	pthread_mutex_unlock(&list_lock);
	return port;
}

void
port_context_end(struct verbs_ctx *ctx)
{
	pthread_mutex_lock(&list_lock);
	if (ctx->port != NULL) {
		dev_unlisten(ctx->dev, &ctx->listener);
		port_context_remove(ctx->port);
	} else {
		device_put_locked(to_device(ctx->base.context.device));
	}
	pthread_mutex_unlock(&list_lock);
}

void
port_context_remove(struct rocade_port *port)
{
	/* read before another thread can close the port */
	bool mr_fault_handler = port->dev->conf.mr_fault_handler;

	pthread_mutex_lock(&port->lock);
	port->contexts--;
	pthread_mutex_unlock(&port->lock);
	if (mr_fault_handler)
		mr_fault_put();
}

int
port_device_index(const struct verbs_device *device)
{
	return device->index;
}

uint64_t
port_device_guid(const struct verbs_device *device)
{
	uint64_t guid = device->guid;

	pthread_mutex_lock(&list_lock);
	if (device->port != NULL)
		guid = device->port->dev->guid;
	pthread_mutex_unlock(&list_lock);
	return guid;
}

struct verbs_device *
device_create_unlisted(const char *name, int index)
{
	struct verbs_device *device = device_create(NULL, name);

	if (device != NULL)
		device->index = index;
	return device;
}
