/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deferred requests: connection requests to a port of this host that has no listener yet.
 * Programs tell their peers the port first, and then bind to it and listen. They rely on
 * the time that address resolution takes with other stacks. Such
 * a request, which would be rejected, is deferred for UCM_HOLD_SHORT_NS, or for
 * UCM_HOLD_NS if the port is bound already.
 */
#include "ucm/internal.h"

static bool
serves(const struct ucm_id *id, const struct ucm_id *who)
{
	return id->ps == who->ps && id->port == ucm_addr_port(&who->dst) &&
	       ucm_addr_serves(id, who->dst.gid);
}

/* Returns for how long to defer the request of id. 0: the port has a listener, or the
 * destination is not local. */
static uint64_t
patience(struct ucm *ucm, const struct ucm_id *id)
{
	uint64_t ns = UCM_HOLD_SHORT_NS;
	const struct ucm_id *other;

	if (!ucm_is_ours(ucm, id->dst.gid))
		return 0;
	LIST_FOREACH(other, ucm_port_bucket(ucm, ucm_addr_port(&id->dst)), port_link)
	{
		if (!serves(other, id))
			continue;
		if (other->state == UCM_LISTEN)
			return 0;
		if (other->state == UCM_BOUND)
			ns = UCM_HOLD_NS;
	}
	return ns;
}

/* Keeps the list sorted by deadline. */
static void
insert(struct ucm *ucm, struct ucm_id *id)
{
	struct ucm_id *other;

	TAILQ_FOREACH_REVERSE(other, &ucm->held, ucm_held, held_link)
	{
		if (other->held_until_ns <= id->held_until_ns)
			break;
	}
	if (other != NULL)
		TAILQ_INSERT_AFTER(&ucm->held, other, id, held_link);
	else
		TAILQ_INSERT_HEAD(&ucm->held, id, held_link);
}

bool
ucm_hold(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	uint64_t ns = patience(ucm, id);

	if (ns == 0)
		return false;
	id->held = true;
	id->held_until_ns = now + ns;
	insert(ucm, id);
	return true;
}

void
ucm_hold_forget(struct ucm *ucm, struct ucm_id *id)
{
	if (id->held)
		TAILQ_REMOVE(&ucm->held, id, held_link);
	id->held = false;
}

static void
release(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event;
	int rc;

	ucm_hold_forget(ucm, id);
	rc = ucm_connect(ucm, id, now);
	if (rc == 0)
		return;
	event = ucm_event_new(id, UCM_EVENT_CONNECT_ERROR, rc);
	if (event != NULL)
		ucm_event_put(event);
}

void
ucm_hold_listening(struct ucm *ucm, const struct ucm_id *listener, uint64_t now)
{
	struct ucm_id *id, *next;

	for (id = TAILQ_FIRST(&ucm->held); id != NULL; id = next) {
		next = TAILQ_NEXT(id, held_link);
		if (serves(listener, id))
			release(ucm, id, now);
	}
}

void
ucm_hold_run(struct ucm *ucm, uint64_t now)
{
	struct ucm_id *id;

	while ((id = TAILQ_FIRST(&ucm->held)) != NULL && id->held_until_ns <= now)
		release(ucm, id, now);
}
