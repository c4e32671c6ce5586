/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Control calls on QPs. A change runs with the lock of the QP's engine held, so it never meets a
 * packet half processed. One that changes the QP's queues, too, runs with the locks of all engines that
 * use them. Other engines go on. They find the QP in the table only to learn which engine it is of. */
#include <errno.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/dev_control.h"
#include "engine/engine_state.h"
#include "engine/grace.h"
#include "engine/next_hop.h"
#include "engine/pass.h"
#include "engine/sched.h"
#include "engine/qp_engine.h"
#include "qp/counting.h"
#include "qp/flight.h"
#include "wire/extensions.h"

static unsigned
engine_choose(struct dev *dev, int wanted)
{
	if (wanted >= 0)
		return (unsigned)wanted;
	return dev->next_engine++ % dev->engine_count;
}

static uint32_t
engine_bit(const struct engine *e)
{
	return 1u << e->index;
}

uint32_t
dev_qp_engines(const struct qp *qp)
{
	return engine_bit(qp->sched.engine) | qp_queue_engines(qp);
}

/* True if packets to it stay in this host: they go to this port, or to another client of
 * the daemon. */
static bool
is_own_gid(const struct dev *dev, const uint8_t gid[16])
{
	return gid_find((const uint8_t(*)[16])dev->gids, DEV_GIDS, gid) >= 0;
}

/* Reserves a QPN: the daemon's with hooks, else one of the table. */
static int
qpn_reserve(struct dev *dev, uint32_t *qpn, uint32_t *index)
{
	const struct dev_hooks *hooks = dev->conf.hooks;
	int rc;

	if (hooks == NULL)
		return qp_table_reserve(&dev->qps, qpn, index);
	rc = hooks->qpn_take(dev->conf.hooks_arg, qpn);
	if (rc != 0)
		return rc;
	rc = qp_table_claim(&dev->qps, *qpn, index);
	if (rc != 0)
		hooks->qpn_give(dev->conf.hooks_arg, *qpn);
	return rc;
}

static void
qpn_free(struct dev *dev, uint32_t qpn, uint32_t index)
{
	qp_table_free(&dev->qps, index);
	if (dev->conf.hooks != NULL)
		dev->conf.hooks->qpn_give(dev->conf.hooks_arg, qpn);
}

/* A QP, and its flight recorder if the device has them. */
static int
qp_init_recorded(struct dev *dev, struct qp *qp, uint32_t qpn, const struct qp_conf *conf,
	const struct alloc *mem, struct event_queue *events, void *object)
{
	int rc = qp_init(qp, qpn, conf, mem, events, object);

	if (rc == 0 && dev->conf.flight_recorder) {
		rc = flight_create(qp);
		if (rc != 0)
			qp_fini(qp);
	}
	return rc;
}

int
dev_qp_init(struct dev *dev, struct qp *qp, const struct qp_conf *conf, int engine,
	struct event_queue *events, void *object)
{
	uint32_t qpn, index, engines;
	struct engine *to;
	int rc;

	if (engine < -1 || engine >= (int)dev->engine_count)
		return -EINVAL;
	pthread_mutex_lock(&dev->lock);
	rc = qpn_reserve(dev, &qpn, &index);
	if (rc != 0) {
		rc = -ENOMEM;
		goto out;
	}
	if (conf->mem == NULL) {
		rc = qp_init_recorded(dev, qp, qpn, conf, &dev->mem, events, object);
	} else {
		/* Without the lock, because the application's allocator may make any
		 * call. */
		pthread_mutex_unlock(&dev->lock);
		rc = qp_init_recorded(dev, qp, qpn, conf, conf->mem, events, object);
		pthread_mutex_lock(&dev->lock);
	}
	if (rc != 0) {
		qpn_free(dev, qpn, index);
		goto out;
	}
	qp->sq.doorbell = index;
	qp->sched.engine_chosen = engine >= 0;
	to = dev->engines[engine_choose(dev, engine)];
	engines = qp_queue_engines(qp) | engine_bit(to);
	dev_engines_lock_of(dev, engines);
	engine_attach(to, qp);
	qp_table_put(&dev->qps, qp);
	dev_engines_unlock_of(dev, engines);
out:
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

static void
peer_change(struct engine *e, struct qp *qp, struct peer *peer)
{
	struct peer *before = qp->peer;

	peer_unblock(&e->peers, qp);
	qp_set_peer(qp, peer);
	if (before != NULL)
		peer_put(&e->peers, before);
}

/* Returns -EINVAL unless source and destination are unicast addresses of one IP
 * version. */
static int
path_check(const struct qp_path *p)
{
	return gid_reaches(p->sgid, p->dgid) && gid_is_unicast(p->dgid) ? 0 : -EINVAL;
}

/* With the lock of the QP's engine held, those of dev_qp_engines() for RESET and where the QP moves to
 * another engine (to, else NULL), and that one's. */
static int
qp_modify_locked(struct dev *dev, struct qp *qp, struct engine *to,
	const struct qp_attr *attr, int mask)
{
	struct peer *peer = NULL;
	bool steered = false;
	struct engine *e;
	int rc;

	if (mask & IBV_QP_AV) {
		rc = path_check(&attr->path);
		if (rc != 0)
			return rc;
		steered = to != NULL && engine_steer(dev, qp, to, attr, mask);
	}
	e = qp->sched.engine;
	/* The last pass may have been long ago. In SQD a new timeout counts from now on. */
	if (qp->sq.flight != NULL || (mask & IBV_QP_TIMEOUT && qp->state == IBV_QPS_SQD))
		e->shared.now = clock_now();
	if (mask & IBV_QP_STATE && attr->state == IBV_QPS_ERR)
		engine_finish_qp(e, qp, clock_now());
	/* RESET drops what is pending, and completions: none is to be written here. */
	if (mask & IBV_QP_STATE && attr->state == IBV_QPS_RESET)
		engine_ack_wait_end(e, qp);
	if (mask & IBV_QP_AV) {
		/* The peer window limits unacknowledged packets: UC has none. */
		if (qp_reliable(qp)) {
			peer = peer_get(&e->peers, attr->path.dgid,
				is_own_gid(dev, attr->path.dgid));
			if (peer == NULL)
				return -ENOMEM;
		}
	}
	rc = qp_modify(qp, attr, mask, dev->active_mtu);
	if (rc != 0) {
		if (peer != NULL)
			peer_put(&e->peers, peer);
		return rc;
	}
	e->stats.qps_steered += steered;
	if (qp->state == IBV_QPS_RESET)
		engine_forget(e, qp);
	else if (qp->state == IBV_QPS_ERR)
		peer_unblock(&e->peers, qp); /* it sends no requests any more */
	if (mask & IBV_QP_AV) {
		peer_change(e, qp, peer);
		engine_headers_build(dev, qp);
	}
	engine_schedule(e, qp);
	return 0;
}

static int
qp_modify_plain(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask)
{
	uint32_t engines = engine_bit(qp->sched.engine);
	struct engine *to = NULL;
	int rc;

	if (mask & IBV_QP_AV && !is_own_gid(dev, attr->path.dgid))
		to = engine_steer_choose(dev, qp, attr, mask);
	if (to != NULL)
		engines |= dev_qp_engines(qp) | engine_bit(to);
	if (mask & IBV_QP_STATE && attr->state == IBV_QPS_RESET)
		engines |= dev_qp_engines(qp);
	dev_engines_lock_of(dev, engines);
	rc = qp_modify_locked(dev, qp, to, attr, mask);
	dev_engines_unlock_of(dev, engines);
	return rc;
}

static int
peer_register(struct dev *dev, const struct qp *qp, const struct qp_attr *attr, int mask)
{
	return dev->conf.hooks->peer_set(dev->conf.hooks_arg, qp->qpn, attr->path.sgid,
		attr->path.dgid, mask & IBV_QP_DEST_QPN ? attr->dest_qpn : qp->dest_qpn);
}

/* The move to RTR, of a QP whose peer is a QP of the same daemon. The daemon delivers what that one
 * has sent as soon as the peer is registered: so the QP is in RTR by then. It sends nothing before
 * it has received. A QP that the daemon refuses goes back. */
static int
qp_modify_then_register(
	struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask)
{
	int rc = qp_modify_plain(dev, qp, attr, mask);

	if (rc != 0)
		return rc;
	rc = peer_register(dev, qp, attr, mask);
	if (rc != 0) {
		engine_lock(qp->sched.engine);
		qp_rtr_undo(qp);
		engine_unlock(qp->sched.engine);
	}
	return rc;
}

/* Registers the peer of a new path with the daemon. Before that the modification is
 * checked: a refused one leaves the registration of the present peer as it is. */
static int
qp_modify_path(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask)
{
	int rc = path_check(&attr->path);

	if (rc == 0 && mask & IBV_QP_STATE && attr->state == IBV_QPS_RTR &&
		is_own_gid(dev, attr->path.dgid))
		return qp_modify_then_register(dev, qp, attr, mask);
	engine_lock(qp->sched.engine);
	if (rc == 0)
		rc = qp_modify_check(qp, attr, mask, dev->active_mtu);
	engine_unlock(qp->sched.engine);
	if (rc == 0)
		rc = peer_register(dev, qp, attr, mask);
	return rc != 0 ? rc : qp_modify_plain(dev, qp, attr, mask);
}

int
dev_qp_modify(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask)
{
	const struct dev_hooks *hooks = dev->conf.hooks;
	bool reset = mask & IBV_QP_STATE && attr->state == IBV_QPS_RESET;
	struct app_locks locks = {.count = 0};
	int rc;

	if (reset)
		qp_reset_locks(qp, &locks);
	dev_lock_with(dev, &locks);
	/* The daemon drops datagrams of others with a controlled Q_Key, whose bit 31 is set. */
	if (hooks != NULL && !dev->conf.privileged && mask & IBV_QP_QKEY &&
		attr->qkey & QKEY_CONTROLLED)
		rc = -EPERM;
	else if (hooks != NULL && mask & IBV_QP_AV && qp->type != IBV_QPT_UD)
		rc = qp_modify_path(dev, qp, attr, mask);
	else
		rc = qp_modify_plain(dev, qp, attr, mask);
	app_locks_release(&locks);
	if (rc == 0 && hooks != NULL && reset && qp->type != IBV_QPT_UD)
		hooks->peer_clear(dev->conf.hooks_arg, qp->qpn);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

struct engine *
dev_qp_lock(struct qp *qp)
{
	for (;;) {
		struct engine *e = qp_engine_now(qp);

		engine_lock(e);
		/* engine_steer() moves a QP with the locks of both engines held. */
		if (likely(qp_engine_now(qp) == e))
			return e;
		engine_unlock(e);
	}
}

void
dev_qp_query(struct qp *qp, struct qp_attr *attr)
{
	struct engine *e = dev_qp_lock(qp);

	qp_query(qp, attr);
	engine_unlock(e);
}

bool
dev_qp_events(struct qp *qp, struct flight_copy *copy)
{
	struct engine *e = dev_qp_lock(qp);
	bool recorded = flight_copy_get(qp, copy);

	engine_unlock(e);
	copy->asked = clock_now();
	return recorded;
}

int
dev_qp_extensions(struct qp *qp)
{
	struct engine *e;
	int extensions;

	if (!qp_reliable(qp))
		return -EOPNOTSUPP;
	e = dev_qp_lock(qp);
	extensions = qp->ece_set ? qp->extensions : e->peers.ext_off ? 0 : (int)EXT_ALL;
	engine_unlock(e);
	return extensions;
}

int
dev_qp_agree(struct qp *qp, uint32_t extensions)
{
	struct engine *e;

	if (!qp_reliable(qp))
		return -EOPNOTSUPP;
	e = dev_qp_lock(qp);
	qp->extensions = (uint8_t)(extensions & EXT_ALL);
	if (e->peers.ext_off)
		qp->extensions = 0;
	qp->ece_set = true;
	engine_unlock(e);
	return 0;
}

int
dev_qp_count(struct qp *qp, struct comp_cntr *cntr, uint32_t ops)
{
	struct engine *e = dev_qp_lock(qp);
	int rc = qp_count_by(qp, cntr, ops);

	engine_unlock(e);
	return rc;
}

static void
qp_listener_remove(struct qp_listener *listener)
{
	if (listener->link.le_prev != NULL)
		LIST_REMOVE(listener, link);
	listener->link.le_prev = NULL;
}

void
dev_qp_listen(struct qp *qp, struct qp_listener *listener)
{
	struct engine *e = dev_qp_lock(qp);

	LIST_INSERT_HEAD(&qp->listeners, listener, link);
	engine_unlock(e);
}

void
dev_qp_unlisten(struct dev *dev, struct qp_listener *listener)
{
	dev_engines_lock(dev);
	qp_listener_remove(listener);
	dev_engines_unlock(dev);
}

void
dev_qp_remove(struct dev *dev, struct qp *qp, uint64_t now)
{
	engine_finish_qp(qp->sched.engine, qp, now);
	while (!LIST_EMPTY(&qp->listeners))
		qp_listener_remove(LIST_FIRST(&qp->listeners));
	qp_table_hide(&dev->qps, qp);
	qp_reset(qp);
	engine_detach(qp);
}

void
dev_qp_stop(struct dev *dev, struct qp *qp, uint64_t now)
{
	struct app_locks locks = {.count = 0};
	uint32_t engines;

	qp_reset_locks(qp, &locks);
	dev_lock_with(dev, &locks);
	engines = dev_qp_engines(qp);
	dev_engines_lock_of(dev, engines);
	dev_qp_remove(dev, qp, now);
	dev_engines_unlock_of(dev, engines);
	dev_unlock_with(dev, &locks);
	dev_grace_wait(dev);
}

void
dev_qp_fini(struct dev *dev, struct qp *qp)
{
	pthread_mutex_lock(&dev->lock);
	qpn_free(dev, qp->qpn, qp->sq.doorbell); /* dev_qp_stop(): no engine finds it */
	pthread_mutex_unlock(&dev->lock);
	qp_fini(qp);
}

void
dev_qp_fail(struct dev *dev, struct qp *qp)
{
	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_ERR) {
		qp_fail(qp);
		engine_schedule(qp->sched.engine, qp);
	}
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
}

void
dev_fail(struct dev *dev)
{
	static const struct qp_attr error = {.state = IBV_QPS_ERR};

	pthread_mutex_lock(&dev->lock);
	dev_engines_lock(dev);
	for (uint32_t i = 0; i <= dev->qps.pool.mask; i++) {
		struct qp *qp = dev->qps.slots[i];

		if (qp == NULL || qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
			continue;
		if (qp_modify(qp, &error, IBV_QP_STATE, dev->active_mtu) == 0)
			engine_schedule(qp->sched.engine, qp);
	}
	dev_engines_unlock(dev);
	pthread_mutex_unlock(&dev->lock);
	dev_event(dev, IBV_EVENT_DEVICE_FATAL);
}
