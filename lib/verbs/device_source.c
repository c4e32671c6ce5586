/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that is listed before its port is open: that of the daemon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/no_cancel.h"
#include "engine/mr_fault.h"
#include "verbs/device_source.h"
#include "verbs/objects.h"

static const struct device_source *source;
/* That of the list, and those of earlier daemons behind it. Never freed once made: programs keep the
 * pointers. */
static struct verbs_device *device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool link_is_cut;   /* device_source_link_cut() */
static unsigned own_links; /* device_source_own_links() */

void
device_source_set(const struct device_source *from)
{
	source = from;
}

int
device_source_refresh(void)
{
	int state = no_cancel_begin();
	int rc = source != NULL ? source->refresh() : -ENOENT;

	no_cancel_end(state);
	return rc;
}

bool
device_source_facts(bool counters, struct device_facts *out)
{
	int state = no_cancel_begin();
	bool found = source != NULL && source->facts(counters, out) == 0;

	no_cancel_end(state);
	if (__atomic_load_n(&link_is_cut, __ATOMIC_RELAXED))
		out->link_up = false;
	return found;
}

void
device_source_own_links(void)
{
	__atomic_fetch_add(&own_links, 1, __ATOMIC_RELAXED);
}

unsigned
device_source_links(void)
{
	return __atomic_load_n(&own_links, __ATOMIC_RELAXED);
}

void
device_source_link_cut(bool cut)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&link_is_cut, cut, __ATOMIC_RELAXED);
	for (struct verbs_device *d = device; d != NULL; d = d->next) {
		if (d->port != NULL)
			port_link_cut(d->port, cut);
	}
	pthread_mutex_unlock(&lock);
}

/* Returns the device with this index, which is made if there is none. NULL: no memory. */
static struct verbs_device *
device_of_index(const char *name, int index)
{
	struct verbs_device *made;

	if (device != NULL && device->index == index)
		return device;
	made = device_create_unlisted(name, index);
	if (made == NULL)
		return NULL;
	made->source = source;
	made->next = device;
	/* Pairs with the acquire in device_source_name(). */
	__atomic_store_n(&device, made, __ATOMIC_RELEASE);
	return made;
}

void
device_source_offer(const char *name, uint64_t guid, int index)
{
	struct verbs_device *offered;

	pthread_mutex_lock(&lock);
	offered = device_of_index(name, index);
	if (offered != NULL) {
		offered->listed = true;
		offered->guid = guid;
	}
	pthread_mutex_unlock(&lock);
}

void
device_source_withdraw(void)
{
	pthread_mutex_lock(&lock);
	if (device != NULL)
		device->listed = false;
	pthread_mutex_unlock(&lock);
}

unsigned
device_source_count(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = device != NULL && device->listed;
	pthread_mutex_unlock(&lock);
	return n;
}

const char *
device_source_name(void)
{
	/* Pairs with the release in device_of_index(). */
	const struct verbs_device *d = __atomic_load_n(&device, __ATOMIC_ACQUIRE);

	return d != NULL ? d->ibv.name : NULL;
}

unsigned
device_source_get(struct ibv_device **list)
{
	unsigned n = device_source_count();

	if (n != 0)
		list[0] = &device->ibv;
	return n;
}

static bool
port_has_ended(const struct rocade_port *port)
{
	const struct port *drv = &port->dev->port;

	return drv->ops->has_ended != NULL && drv->ops->has_ended(drv->drv);
}

int
device_source_context_add(struct verbs_device *of, struct rocade_port **out)
{
	struct rocade_port *port;
	int state = no_cancel_begin(), err = 0;

	pthread_mutex_lock(&lock);
	port = of->port;
	/* The daemon has ended. Open contexts keep the dead port; a new context opens a
	 * new one. */
	if (port != NULL && port_has_ended(port))
		port = NULL;
	if (port == NULL) {
		err = of->source->open(&port);
		if (err == 0) {
			port->source = of->source;
			port->device = of;
			of->port = port;
		}
	}
	if (err == 0) {
		port->contexts++;
		if (port->dev->conf.mr_fault_handler)
			mr_fault_get();
	}
	pthread_mutex_unlock(&lock);
	no_cancel_end(state);
	*out = port;
	return err;
}

void
device_source_context_remove(struct rocade_port *port)
{
	bool mr_fault_handler = port->dev->conf.mr_fault_handler;
	int state = no_cancel_begin();

	pthread_mutex_lock(&lock);
	if (--port->contexts == 0) {
		/* After fork() the device may have another port. */
		if (port->device->port == port)
			port->device->port = NULL;
		if (port->on_close != NULL)
			port->on_close(port);
		port->source->close(port->dev);
		pthread_mutex_destroy(&port->lock);
		free(port);
	}
	/* The engine runs until the port is closed. */
	if (mr_fault_handler)
		mr_fault_put();
	pthread_mutex_unlock(&lock);
	no_cancel_end(state);
}

void
devices_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
	port_list_fork_prepare();
}

void
devices_fork_done(bool child)
{
	for (struct verbs_device *d = device; child && d != NULL; d = d->next)
		d->port = NULL;
	if (child)
		__atomic_store_n(&link_is_cut, false, __ATOMIC_RELAXED);
	port_list_fork_done();
	pthread_mutex_unlock(&lock);
}
