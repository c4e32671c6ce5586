/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cm_port.h"
#include "engine/engine_gsi.h"

struct cm_port {
	struct cm *cm;
	struct dev *dev;
	/* Protects cm. May be taken with an engine lock held, not vice versa. */
	pthread_mutex_t lock;
	/* the engines call on_tx() from this time on: 0 if cm has a message to send, else
	 * when cm's next timer expires */
	uint64_t due;
	void (*wake)(void *arg); /* NULL: no callback is set */
	void *wake_arg;
	bool notified; /* wake was called since the last cm_port_rearm() */
};

/* Called with the lock held. */
static void
due_update(struct cm_port *port)
{
	uint64_t due = cm_has_tx(port->cm) ? 0 : cm_deadline(port->cm);

	__atomic_store_n(&port->due, due, __ATOMIC_RELAXED);
}

struct cm *
cm_port_lock(struct cm_port *port)
{
	pthread_mutex_lock(&port->lock);
	return port->cm;
}

void
cm_port_unlock(struct cm_port *port)
{
	due_update(port);
	if (port->wake != NULL && !port->notified && cm_has_event(port->cm)) {
		port->notified = true;
		port->wake(port->wake_arg);
	}
	pthread_mutex_unlock(&port->lock);
	dev_gsi_due(port->dev);
	dev_control_wake(port->dev); /* it sends the messages */
}

void
cm_port_set_wake(struct cm_port *port, void (*wake)(void *arg), void *arg)
{
	cm_port_lock(port);
	port->wake = wake;
	port->wake_arg = arg;
	port->notified = false;
	cm_port_unlock(port);
}

void
cm_port_rearm(struct cm_port *port)
{
	cm_port_lock(port);
	port->notified = false;
	cm_port_unlock(port);
}

static bool
on_claims(void *arg, const struct gsi_msg *msg)
{
	struct cm_port *port = arg;
	struct cm_path path = {.local = false};
	bool claimed;

	memcpy(path.sgid, msg->sgid, 16);
	memcpy(path.dgid, msg->dgid, 16);
	claimed = cm_claims(cm_port_lock(port), msg->bytes, GSI_LEN, &path);
	pthread_mutex_unlock(&port->lock);
	return claimed;
}

static void
on_rx(void *arg, const struct gsi_msg *msg, uint64_t now)
{
	struct cm_port *port = arg;
	struct cm *cm = cm_port_lock(port);
	struct cm_path path = {.local = false};

	memcpy(path.sgid, msg->sgid, 16);
	memcpy(path.dgid, msg->dgid, 16);
	cm_rx(cm, msg->bytes, GSI_LEN, &path, now);
	cm_port_unlock(port);
}

static bool
on_tx(void *arg, struct gsi_msg *msg, uint64_t now)
{
	struct cm_port *port = arg;
	struct cm *cm = cm_port_lock(port);
	struct cm_path path;
	struct mad mad;
	bool more;

	cm_run(cm, now);
	more = cm_tx(cm, &mad, &path);
	if (more) {
		memcpy(msg->sgid, path.sgid, 16);
		memcpy(msg->dgid, path.dgid, 16);
		memcpy(msg->bytes, &mad, GSI_LEN);
		msg->answer = !mad_opens(&mad);
	}
	cm_port_unlock(port);
	return more;
}

int
cm_port_open(
	struct dev *dev, const struct cm_conf *conf, uint64_t now, struct cm_port **out)
{
	struct cm_conf full = *conf;
	struct cm_port *port = calloc(1, sizeof(*port));
	struct gsi_user user = {
		.claims = on_claims, .rx = on_rx, .tx = on_tx, .arg = port};
	int rc;

	if (port == NULL)
		return -ENOMEM;
	full.ca_guid = dev->guid;
	rc = cm_create(&full, now, &port->cm);
	if (rc != 0) {
		free(port);
		return rc;
	}
	port->dev = dev;
	pthread_mutex_init(&port->lock, NULL);
	due_update(port);
	user.due = &port->due;
	rc = dev_gsi_set(dev, GSI_USER_CM, &user);
	if (rc != 0) {
		cm_destroy(port->cm);
		pthread_mutex_destroy(&port->lock);
		free(port);
		return rc;
	}
	*out = port;
	return 0;
}

void
cm_port_close(struct cm_port *port)
{
	dev_gsi_clear(port->dev, GSI_USER_CM);
	cm_destroy(port->cm);
	pthread_mutex_destroy(&port->lock);
	free(port);
}
