/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Events of a device as a whole: its link, its addresses. */
#include "engine/dev.h"
#include "port/port_io.h"

void
dev_listen(struct dev *dev, struct dev_listener *listener, struct event_queue *events)
{
	async_event_init(&listener->events, events, NULL);
	pthread_mutex_lock(&dev->link_lock);
	LIST_INSERT_HEAD(&dev->listeners, listener, link);
	pthread_mutex_unlock(&dev->link_lock);
}

void
dev_unlisten(struct dev *dev, struct dev_listener *listener)
{
	pthread_mutex_lock(&dev->link_lock);
	LIST_REMOVE(listener, link);
	pthread_mutex_unlock(&dev->link_lock);
	event_purge(&listener->events);
}

/* With link_lock held. */
static void
raise_all(struct dev *dev, enum ibv_event_type event)
{
	struct dev_listener *l;

	LIST_FOREACH(l, &dev->listeners, link)
	event_raise(&l->events, event);
}

void
dev_event(struct dev *dev, enum ibv_event_type event)
{
	pthread_mutex_lock(&dev->link_lock);
	raise_all(dev, event);
	pthread_mutex_unlock(&dev->link_lock);
}

/* The link is cut: returns whether it was up. With link_lock held. */
static bool
link_up_ends(struct dev *dev)
{
	bool was = dev->link_up;

	__atomic_store_n(&dev->link_up, false, __ATOMIC_RELAXED);
	return was;
}

/* With link_lock held. */
static void
link_state_update(struct dev *dev)
{
	bool changed = dev->link_cut
			       ? link_up_ends(dev)
			       : port_link_update(&dev->port, dev->net, &dev->link_up);

	if (changed)
		raise_all(dev, dev->link_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

bool
dev_link_up(struct dev *dev)
{
	bool up;

	pthread_mutex_lock(&dev->link_lock);
	link_state_update(dev);
	up = dev->link_up;
	pthread_mutex_unlock(&dev->link_lock);
	return up;
}

void
dev_link_cut(struct dev *dev, bool cut)
{
	pthread_mutex_lock(&dev->link_lock);
	dev->link_cut = cut;
	link_state_update(dev);
	pthread_mutex_unlock(&dev->link_lock);
}

void
dev_link_poll(struct dev *dev)
{
	/* Another thread polls the link right now. */
	if (pthread_mutex_trylock(&dev->link_lock) != 0)
		return;
	link_state_update(dev);
	pthread_mutex_unlock(&dev->link_lock);
}
