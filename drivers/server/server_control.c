/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/server_control.h"

/* Packets, or another user, count as waiting for this long after they moved or asked. */
#define RECENT_NS NS_PER_MS
#define EVENTS_BUSY 4               /* handled between two passes while packets move */
#define EVENTS_IDLE 64              /* else */
#define EVENTS_NS (500 * NS_PER_US) /* after this no further event is begun */
#define PAUSE_FACTOR 4 /* events take a fifth of the time while packets move */
#define SHARE 10       /* a user's requests take a tenth while others wait */
/* Credit of a user who has asked for little: a millisecond of requests at once. */
#define BURST_NS (NS_PER_MS * SHARE)
#define PAUSE_MAX_NS (2 * NS_PER_MS) /* longest time without events */
#define REQUEST_MIN_NS NS_PER_US     /* no request is free */
/* CPU time includes interrupts during the request, which may take milliseconds. */
#define REQUEST_MAX_NS (NS_PER_MS / 2)
#define UNPARK_MAX 8 /* users resumed at the beginning of a round, at least one */

void
control_init(struct rocade_daemon *d)
{
	TAILQ_INIT(&d->control.parked);
	d->control.round = 1; /* no user has had a turn */
}

/* then: may be later than now, which the caller read before. */
static bool
is_recent(uint64_t then, uint64_t now)
{
	return then != 0 && (then > now || now - then < RECENT_NS);
}

/* Others wait for the daemon's thread. */
static bool
is_shared(const struct rocade_daemon *d, uint64_t now)
{
	return is_recent(d->control.moved_ns, now) ||
	       is_recent(d->control.asker_changed_ns, now);
}

unsigned
control_events(const struct rocade_daemon *d, uint64_t now)
{
	return is_recent(d->control.moved_ns, now) ? EVENTS_BUSY : EVENTS_IDLE;
}

bool
control_events_end(uint64_t begin_ns, uint64_t now)
{
	return now - begin_ns >= EVENTS_NS;
}

void
control_pause(struct rocade_daemon *d, uint64_t now, uint64_t took_ns)
{
	if (is_recent(d->control.moved_ns, now))
		d->control.due_ns = now + RTE_MIN(PAUSE_FACTOR * took_ns, PAUSE_MAX_NS);
}

bool
control_may(const struct rocade_daemon *d, const struct account *account, uint64_t now)
{
	return account->control_ns <= now || !is_shared(d, now);
}

void
control_charge(
	struct rocade_daemon *d, struct account *account, uint64_t now, uint64_t took_ns)
{
	uint64_t full = now - RTE_MIN(now, BURST_NS);

	if (account != d->control.asker) {
		d->control.asker = account;
		d->control.asker_changed_ns = now;
	}
	account->control_ns =
		RTE_MAX(account->control_ns, full) +
		SHARE * RTE_MIN(RTE_MAX(took_ns, REQUEST_MIN_NS), REQUEST_MAX_NS);
	/* Requests of a user that is alone are not limited. It owes others no more for them than a
	 * limited user would. */
	account->control_ns = RTE_MIN(account->control_ns, now + SHARE * REQUEST_MAX_NS);
	account->control_total_ns += took_ns;
}

void
control_park(struct rocade_daemon *d, struct fd_source *source)
{
	struct account *account = source->conn->account;

	if (source->parked)
		return;
	source->parked = true;
	source->resumed = false;
	d->control.parks++;
	fd_source_pause(source, true);
	if (TAILQ_EMPTY(&account->parked))
		TAILQ_INSERT_TAIL(&d->control.parked, account, parked_link);
	TAILQ_INSERT_TAIL(&account->parked, &source->waiter, link);
}

void
control_forget(struct rocade_daemon *d, struct fd_source *source)
{
	struct account *account = source->conn->account;

	if (!source->parked)
		return;
	source->parked = false;
	TAILQ_REMOVE(&account->parked, &source->waiter, link);
	if (TAILQ_EMPTY(&account->parked))
		TAILQ_REMOVE(&d->control.parked, account, parked_link);
}

/* Resumes up to n sources of the user. */
static void
resume(struct rocade_daemon *d, struct account *account, unsigned n)
{
	struct account_waiter *waiter;

	while (n-- != 0 && (waiter = TAILQ_FIRST(&account->parked)) != NULL) {
		struct fd_source *source = container_of(waiter, struct fd_source, waiter);

		control_forget(d, source);
		source->resumed = true;
		fd_source_pause(source, false);
	}
}

bool
control_round(struct rocade_daemon *d, uint64_t now)
{
	const struct account *last = TAILQ_LAST(&d->control.parked, parked_users);
	const struct account *looked = NULL;
	/* There are no turns when no other user, and no packet, waits. */
	unsigned sources = is_shared(d, now) ? 1 : EVENTS_IDLE;
	bool resumed = false;

	d->control.round++;
	for (unsigned i = 0; looked != last && (i < UNPARK_MAX || !resumed); i++) {
		struct account *account = TAILQ_FIRST(&d->control.parked);

		looked = account;
		/* Behind the other users. */
		TAILQ_REMOVE(&d->control.parked, account, parked_link);
		TAILQ_INSERT_TAIL(&d->control.parked, account, parked_link);
		if (control_may(d, account, now)) {
			resume(d, account, sources);
			resumed = true;
		}
	}
	return resumed;
}

bool
control_turn_take(struct rocade_daemon *d, struct fd_source *source, uint64_t now)
{
	struct account *account = source->conn->account;

	/* Behind the user's sources that were parked before. */
	if (!source->resumed && !TAILQ_EMPTY(&account->parked))
		return false;
	if (account->control_round == d->control.round && is_shared(d, now))
		return false;
	account->control_round = d->control.round;
	source->resumed = false;
	return true;
}

bool
control_round_is_over(const struct rocade_daemon *d, const struct fd_source *source)
{
	return source == NULL ||
	       (source->conn == NULL && source->round == d->control.round);
}

uint64_t
control_sleep_ns(const struct rocade_daemon *d)
{
	return control_is_parked(d) ? RECENT_NS : TIME_NEVER;
}
