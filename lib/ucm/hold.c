/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to a port of this machine that somebody has bound and does not listen at yet.
 * Programs tell their peers the port between the two, and count on the time that
 * resolving an address takes elsewhere: such a request waits a moment instead of being
 * rejected.
 */
#include "ucm/internal.h"

static bool
serves(const struct ucm_id *id, const struct ucm_id *who)
{
	return id->ps == who->ps && id->port == ucm_addr_port(&who->dst) &&
	       ucm_addr_serves(id, who->dst.gid);
}

/* Whether somebody has the port that id asks for, and nobody listens there. */
static bool
somebody_will_listen(struct ucm *ucm, const struct ucm_id *id)
{
	const struct ucm_id *other;
	bool bound = false;

	if (!ucm_is_ours(ucm, id->dst.gid))
		return false;
	LIST_FOREACH(other, ucm_port_bucket(ucm, ucm_addr_port(&id->dst)), port_link)
	{
		if (!serves(other, id))
			continue;
		if (other->state == UCM_LISTEN)
			return false;
		bound |= other->state == UCM_BOUND;
	}
	return bound;
}

bool
ucm_hold(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	if (!somebody_will_listen(ucm, id))
		return false;
	id->held = true;
	id->held_until_ns = now + UCM_HOLD_NS;
	TAILQ_INSERT_TAIL(&ucm->held, id, held_link);
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

	/* All wait equally long. */
	while ((id = TAILQ_FIRST(&ucm->held)) != NULL && id->held_until_ns <= now)
		release(ucm, id, now);
}
