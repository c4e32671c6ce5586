/* SPDX-License-Identifier: BSD-3-Clause */
/* Open ports: their QP 1, and their addresses. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "rdmacm/inside.h"

#define OUT_BYTES (INSIDE_OUT * sizeof(struct gsi_msg))

/* ---- QP 1: called by engines, with an engine lock held ---- */

static struct cm_path
path_of(const struct gsi_msg *msg)
{
	struct cm_path path = {.local = false};

	memcpy(path.sgid, msg->sgid, 16);
	memcpy(path.dgid, msg->dgid, 16);
	return path;
}

static bool
inside_claims(void *arg, const struct gsi_msg *msg)
{
	struct cm_path path = path_of(msg);
	int state = inside_lock();
	bool claimed = ucm_claims(inside.ucm, msg->bytes, GSI_LEN, &path);

	(void)arg;
	inside_unlock(state);
	return claimed;
}

static void
inside_rx(void *arg, const struct gsi_msg *msg, uint64_t now)
{
	struct cm_path path = path_of(msg);
	int state = inside_lock();

	(void)arg;
	if (now >= inside.sweep_ns)
		inside_sweep(now);
	ucm_rx(inside.ucm, msg->bytes, GSI_LEN, &path, now);
	inside_unlock(state);
}

static bool
inside_tx(void *arg, struct gsi_msg *msg, uint64_t now)
{
	struct inside_port *p = arg;
	int state = inside_lock();
	bool more;

	if (now >= inside.sweep_ns)
		inside_sweep(now);
	if (p->out_head == p->out_tail)
		ucm_run(inside.ucm, now);
	more = p->out_head != p->out_tail;
	if (more)
		*msg = p->out[p->out_head++ % INSIDE_OUT];
	inside_unlock(state);
	return more;
}

/* ---- With setup ---- */

/* Copies the addresses of the device, with the link-local one. */
static void
net_copy(struct dev *dev, struct net_conf *net)
{
	pthread_mutex_lock(&dev->lock);
	*net = *net_conf(dev->net);
	pthread_mutex_unlock(&dev->lock);
}

static int
port_serve(struct inside_port *p)
{
	struct gsi_user user = {.claims = inside_claims,
		.rx = inside_rx,
		.tx = inside_tx,
		.arg = p,
		.due = &p->due};
	struct dev *dev = p->port->dev;
	struct ucm_device_conf conf = {.guid = dev->guid,
		.index = (uint32_t)port_device_index(p->port->device),
		.path_mtu = (uint8_t)dev->active_mtu};
	int state, rc;

	if (p->out == NULL)
		p->out = alloc_get(&alloc_plain, "rdma_cm messages", OUT_BYTES);
	if (p->out == NULL)
		return -ENOMEM;
	p->due = TIME_NEVER;
	p->out_head = p->out_tail;
	rc = dev_gsi_set(dev, GSI_USER_RDMACM, &user);
	if (rc != 0)
		return rc;
	net_copy(dev, &conf.net);
	state = inside_lock();
	p->net = conf.net;
	rc = ucm_device_add(inside.ucm, &conf, &p->device);
	inside_unlock(state);
	if (rc != 0)
		dev_gsi_clear(dev, GSI_USER_RDMACM);
	return rc;
}

int
inside_ports_serve(void)
{
	struct inside_port *p;
	int rc = 0;

	TAILQ_FOREACH (p, &inside.ports, link) {
		if (rc == 0 && p->device == NULL)
			rc = port_serve(p);
	}
	return rc;
}

static void
inside_port_free(struct inside_port *p)
{
	alloc_put(&alloc_plain, p->out, OUT_BYTES);
	alloc_put(&alloc_plain, p, sizeof(*p));
}

static struct inside_port *
inside_port_find(const struct rocade_port *port)
{
	struct inside_port *p;

	TAILQ_FOREACH (p, &inside.ports, link) {
		if (p->port == port)
			break;
	}
	return p;
}

/* ---- What happens to ports (verbs_port.h) ---- */

static int
port_opened(struct rocade_port *port)
{
	struct inside_port *p;
	int rc, state;

	if (inside.forked)
		return 0;
	p = alloc_get(&alloc_plain, "rdma_cm port", sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->port = port;
	pthread_mutex_lock(&inside.setup);
	state = inside_lock();
	TAILQ_INSERT_TAIL(&inside.ports, p, link);
	inside_unlock(state);
	rc = inside_fork_register();
	if (rc == 0 && inside.ucm != NULL)
		rc = port_serve(p);
	if (rc != 0) {
		state = inside_lock();
		TAILQ_REMOVE(&inside.ports, p, link);
		inside_unlock(state);
		inside_port_free(p);
	}
	pthread_mutex_unlock(&inside.setup);
	return rc;
}

/* Sends the messages that wait. */
static void
port_drain(struct inside_port *p)
{
	for (unsigned i = 0; i < INSIDE_OUT && p->out_head != p->out_tail; i++)
		engine_run(p->port->dev->engines[0], engine_clock());
}

/* Ends what is bound to the port. The last messages leave, so that the peers need not wait for
 * their timers: a batch at a time, because no more than INSIDE_OUT can wait. Meanwhile peers may
 * ask for new connections, so the number of batches is limited. */
static void
port_unserve(struct inside_port *p)
{
	bool more = true;
	int state;

	for (unsigned i = 0; more && i < INSIDE_IDS / UCM_DEVICE_BATCH; i++) {
		port_drain(p);
		state = inside_lock();
		more = ucm_device_shrink(p->device, engine_clock());
		inside_unlock(state);
	}
	port_drain(p);
	state = inside_lock();
	ucm_device_remove(p->device, engine_clock());
	inside_unlock(state);
	port_drain(p);
	dev_gsi_clear(p->port->dev, GSI_USER_RDMACM);
}
static_assert(UCM_DEVICE_BATCH <= INSIDE_OUT, "a batch has room");

/* The last port ends the server, unless the program has channels open. */
static void
port_closing(struct rocade_port *port)
{
	struct inside_port *p;
	uint64_t now;
	int state;

	if (inside.forked)
		return;
	pthread_mutex_lock(&inside.setup);
	p = inside_port_find(port);
	if (p->device != NULL)
		port_unserve(p);
	state = inside_lock();
	TAILQ_REMOVE(&inside.ports, p, link);
	if (inside.ucm != NULL && TAILQ_EMPTY(&inside.ports)) {
		now = engine_clock();
		do
			inside_sweep(now);
		while (inside.sweep_ns == now);
		if (TAILQ_EMPTY(&inside.channels))
			inside_end(engine_clock());
	}
	inside_unlock(state);
	pthread_mutex_unlock(&inside.setup);
	inside_port_free(p);
}

static void
port_addressed(struct rocade_port *port)
{
	struct inside_port *p;
	struct net_conf net;
	int state;

	if (inside.forked)
		return;
	pthread_mutex_lock(&inside.setup);
	p = inside_port_find(port);
	net_copy(port->dev, &net);
	state = inside_lock();
	p->net = net;
	if (p->device != NULL)
		ucm_device_set_net(p->device, &net);
	inside_unlock(state);
	pthread_mutex_unlock(&inside.setup);
}

static bool
rdmacm_is_loaded(void)
{
	return inside.loaded;
}

static const struct port_watch watch = {.opened = port_opened,
	.closing = port_closing,
	.addressed = port_addressed,
	.rdmacm_loaded = rdmacm_is_loaded};

static __attribute__((constructor)) void
watch_register(void)
{
	port_watch_set(&watch);
}
