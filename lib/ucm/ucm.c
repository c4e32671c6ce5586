/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of sessions and channels; received messages and timers. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_event.h"
#include "ucm/ucm_request.h"

int
ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out)
{
	struct ucm *ucm;
	int rc;

	if (conf->limits.ids == 0 || conf->limits.channels == 0)
		return -EINVAL;
	ucm = alloc_get(&alloc_plain, "rdma_cm", sizeof(*ucm));
	if (ucm == NULL)
		return -ENOMEM;
	ucm->conf = *conf;
	random_numbers_init(&ucm->psns, &conf->cm.random, RANDOM_PSNS);
	random_numbers_init(&ucm->port_choices, &conf->cm.random, RANDOM_PORTS);
	ucm->joins_key = random_key_derive(&conf->cm.random, RANDOM_JOINS);
	TAILQ_INIT(&ucm->devices);
	TAILQ_INIT(&ucm->sessions);
	ucm_request_init(ucm);
	TAILQ_INIT(&ucm->closing);
	TAILQ_INIT(&ucm->held);
	TAILQ_INIT(&ucm->showing);
	for (unsigned i = 0; i < UCM_PORT_BUCKETS; i++)
		LIST_INIT(&ucm->ports[i]);
	port_waits_init(&ucm->port_waits);
	rc = cm_create(&conf->cm, now, &ucm->cm);
	if (rc != 0) {
		alloc_put(&alloc_plain, ucm, sizeof(*ucm));
		return rc;
	}
	*out = ucm;
	return 0;
}

/* Frees a session whose channels are all gone. */
static void
session_free(struct ucm_session *s)
{
	ucm_table_fini(&s->ids);
	ucm_table_fini(&s->channels);
	TAILQ_REMOVE(&s->ucm->sessions, s, link);
	if (s->account != NULL)
		account_close(s->account);
	alloc_put(&alloc_plain, s, sizeof(*s));
}

/* Frees a closed channel whose IDs are all destroyed. */
static void
channel_free(struct ucm_channel *c)
{
	struct ucm_session *s = c->session;

	assert(TAILQ_EMPTY(&c->events) && TAILQ_EMPTY(&c->waiting));
	ucm_events_end(c);
	TAILQ_REMOVE(&s->ucm->closing, c, link);
	alloc_put(&alloc_plain, c, sizeof(*c));
	if (--s->channel_count == 0 && s->ended)
		session_free(s);
}

/* Does a small part of the destruction of a closed channel's first ID: a listener may have
 * a thousand requests that were not accepted. */
static void
closed_id_shrink(struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event = TAILQ_FIRST(&id->events);

	/* For a group, the ID that has joined it. */
	if (id->state != UCM_MCAST && !LIST_EMPTY(&id->mcasts))
		ucm_id_destroy(LIST_FIRST(&id->mcasts), now);
	else if (event != NULL && event->new_id != NULL)
		ucm_id_destroy(event->new_id, now);
	else if (event != NULL)
		ucm_event_drop(event);
	else
		ucm_id_destroy(id, now);
}

static void
closing_serve(struct ucm *ucm, uint64_t now)
{
	struct ucm_channel *c;

	for (unsigned i = 0; i < UCM_CLOSED_IDS; i++) {
		while ((c = TAILQ_FIRST(&ucm->closing)) != NULL && LIST_EMPTY(&c->ids))
			channel_free(c);
		if (c == NULL)
			return;
		closed_id_shrink(LIST_FIRST(&c->ids), now);
	}
}

void
ucm_destroy(struct ucm *ucm)
{
	struct ucm_device *device;

	while (!TAILQ_EMPTY(&ucm->closing))
		closing_serve(ucm, 0);
	assert(TAILQ_EMPTY(&ucm->sessions));
	while ((device = TAILQ_FIRST(&ucm->devices)) != NULL) {
		TAILQ_REMOVE(&ucm->devices, device, link);
		alloc_put(&alloc_plain, device, sizeof(*device));
	}
	port_waits_fini(&ucm->port_waits);
	cm_destroy(ucm->cm);
	alloc_put(&alloc_plain, ucm, sizeof(*ucm));
}

int
ucm_session_create(struct ucm *ucm, void *owner, struct ucm_session **out)
{
	struct ucm_session *s = alloc_get(&alloc_plain, "rdma_cm session", sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->ucm = ucm;
	s->owner = owner;
	s->device_index = UCM_NO_INDEX;
	s->serial = (uint32_t)(ucm->session_count++ % UINT32_MAX) + 1;
	rc = ucm_table_init(&s->ids, ucm->conf.limits.ids);
	if (rc == 0)
		rc = ucm_table_init(&s->channels, ucm->conf.limits.channels);
	if (rc != 0) {
		ucm_table_fini(&s->ids);
		ucm_table_fini(&s->channels);
		alloc_put(&alloc_plain, s, sizeof(*s));
		return rc;
	}
	TAILQ_INSERT_TAIL(&ucm->sessions, s, link);
	*out = s;
	return 0;
}

void
ucm_session_set_user(struct ucm_session *session, uint32_t uid, bool privileged)
{
	session->uid = uid;
	session->privileged = privileged;
}

void
ucm_session_set_shared_uid(struct ucm_session *session)
{
	session->shares_uid = true;
}

void
ucm_session_set_device_index(struct ucm_session *session, uint32_t index)
{
	session->device_index = index;
}

void
ucm_session_charge(struct ucm_session *session, struct account *account)
{
	session->account = account;
}

static void
channel_end(struct ucm_channel *c)
{
	struct ucm_session *session = c->session;

	ucm_table_remove(&session->channels, c->number);
	c->closed = true;
	TAILQ_INSERT_TAIL(&session->ucm->closing, c, link);
}

void
ucm_session_destroy(struct ucm_session *s, uint64_t now)
{
	struct ucm *ucm = s->ucm;

	for (uint32_t i = 0; s->channels.used != 0; i++) {
		if (s->channels.slots[i] != NULL)
			channel_end(s->channels.slots[i]);
	}
	s->ended = true;
	if (s->account != NULL)
		s->account->holders++;
	if (s->channel_count == 0)
		session_free(s);
	closing_serve(ucm, now);
	ucm_pump(ucm, now);
}

int
ucm_channel_open(struct ucm_session *session, void *owner, struct ucm_channel **out,
	uint32_t *number)
{
	struct ucm_channel *c = alloc_get(&alloc_plain, "rdma_cm channel", sizeof(*c));
	int rc;

	if (c == NULL)
		return -ENOMEM;
	c->session = session;
	c->owner = owner;
	TAILQ_INIT(&c->events);
	TAILQ_INIT(&c->waiting);
	LIST_INIT(&c->ids);
	rc = ucm_table_add(&session->channels, c, &c->number);
	if (rc != 0) {
		alloc_put(&alloc_plain, c, sizeof(*c));
		return rc;
	}
	session->channel_count++;
	*out = c;
	*number = c->number;
	return 0;
}

void
ucm_channel_close(struct ucm_channel *c, uint64_t now)
{
	struct ucm *ucm = c->session->ucm;

	channel_end(c);
	closing_serve(ucm, now);
	ucm_pump(ucm, now);
}

bool
ucm_claims(struct ucm *ucm, const uint8_t *bytes, size_t len, const struct cm_path *path)
{
	return cm_claims(ucm->cm, bytes, len, path);
}

void
ucm_rx(struct ucm *ucm, const uint8_t *bytes, size_t len, const struct cm_path *path,
	uint64_t now)
{
	(void)cm_rx(ucm->cm, bytes, len, path, now);
	ucm_pump(ucm, now);
}

void
ucm_run(struct ucm *ucm, uint64_t now)
{
	cm_run(ucm->cm, now);
	ucm_request_run(ucm, now);
	ucm_events_run(ucm, now);
	closing_serve(ucm, now);
	ucm_pump(ucm, now);
}

uint64_t
ucm_deadline(const struct ucm *ucm)
{
	uint64_t due = RTE_MIN(cm_deadline(ucm->cm), ucm_events_deadline(ucm));

	if (!TAILQ_EMPTY(&ucm->closing))
		return 0;
	return RTE_MIN(due, ucm_request_deadline(ucm));
}

uint32_t
ucm_listeners(const struct ucm *ucm)
{
	return cm_listeners(ucm->cm);
}

const struct cm_stats *
ucm_stats(const struct ucm *ucm)
{
	return cm_stats_of(ucm->cm);
}

uint32_t
ucm_ids(const struct ucm *ucm)
{
	return ucm->id_count;
}

uint32_t
ucm_session_ids(const struct ucm_session *session)
{
	return session->ids.used;
}
