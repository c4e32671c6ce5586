/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of sessions and channels; received messages and timers. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/id.h"
#include "ucm/ucm_event.h"
#include "ucm/ucm_request.h"

int
ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out)
{
	struct ucm *ucm;
	int rc;

	if (conf->net.addr_count == 0 || conf->net.addr_count > NET_MAX_ADDRS ||
		conf->limits.ids == 0 || conf->limits.channels == 0 ||
		conf->path_mtu < 1 || conf->path_mtu > 5)
		return -EINVAL;
	ucm = alloc_get(&alloc_plain, "rdma_cm", sizeof(*ucm));
	if (ucm == NULL)
		return -ENOMEM;
	ucm->conf = *conf;
	random_numbers_init(&ucm->psns, &conf->cm.random, RANDOM_PSNS);
	random_numbers_init(&ucm->port_choices, &conf->cm.random, RANDOM_PORTS);
	TAILQ_INIT(&ucm->sessions);
	TAILQ_INIT(&ucm->deferred);
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

void
ucm_destroy(struct ucm *ucm)
{
	assert(TAILQ_EMPTY(&ucm->sessions));
	port_waits_fini(&ucm->port_waits);
	cm_destroy(ucm->cm);
	alloc_put(&alloc_plain, ucm, sizeof(*ucm));
}

void
ucm_set_net(struct ucm *ucm, const struct net_conf *net)
{
	ucm->conf.net = *net;
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
	rc = ucm_table_init(&s->ids, ucm->conf.limits.ids);
	if (rc == 0)
		rc = ucm_table_init(&s->channels, ucm->conf.limits.channels);
	if (rc != 0) {
		ucm_table_fini(&s->ids);
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
ucm_session_charge(struct ucm_session *session, struct account *account)
{
	session->account = account;
}

void
ucm_session_destroy(struct ucm_session *s, uint64_t now)
{
	for (uint32_t i = 0; s->channels.used != 0; i++) {
		struct ucm_channel *channel = s->channels.slots[i];

		if (channel != NULL)
			ucm_channel_close(channel, now);
	}
	ucm_table_fini(&s->ids);
	ucm_table_fini(&s->channels);
	TAILQ_REMOVE(&s->ucm->sessions, s, link);
	alloc_put(&alloc_plain, s, sizeof(*s));
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
	LIST_INIT(&c->ids);
	rc = ucm_table_add(&session->channels, c, &c->number);
	if (rc != 0) {
		alloc_put(&alloc_plain, c, sizeof(*c));
		return rc;
	}
	*out = c;
	*number = c->number;
	return 0;
}

/* Returns an ID of the channel to destroy, or NULL. For a group it is the ID that has
 * joined the group: destroying that destroys the group too. */
static struct ucm_id *
id_first(const struct ucm_channel *c)
{
	struct ucm_id *id = LIST_FIRST(&c->ids);

	return id != NULL && id->state == UCM_MCAST ? id->member : id;
}

void
ucm_channel_close(struct ucm_channel *c, uint64_t now)
{
	struct ucm_session *session = c->session;
	struct ucm_id *id;

	while ((id = id_first(c)) != NULL)
		ucm_id_destroy(id, now);
	assert(TAILQ_EMPTY(&c->events));
	ucm_table_remove(&session->channels, c->number);
	alloc_put(&alloc_plain, c, sizeof(*c));
	ucm_pump(session->ucm, now);
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
	ucm_pump(ucm, now);
}

uint64_t
ucm_deadline(const struct ucm *ucm)
{
	const struct ucm_id *first = TAILQ_FIRST(&ucm->deferred);
	uint64_t due = cm_deadline(ucm->cm);

	return first != NULL ? RTE_MIN(due, first->deferred_until_ns) : due;
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
