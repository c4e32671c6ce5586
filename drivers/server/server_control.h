/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of the daemon's time requests of clients may take: its thread moves packets
 * too.
 *
 * The daemon handles events for half a millisecond, one after another, and then looks for
 * packets. It goes on with those that are left: epoll puts each event that it has reported
 * behind the others. While packets move, the daemon serves a few events at a time, and then
 * none until it has moved packets for four times as long, 2 ms at most.
 *
 * While others wait, that is while packets move or another user has requests, users take
 * turns, however many connections each has. In a round a user has one request served, or one
 * end of a connection, process or channel. The other sources of that user that are ready are
 * parked: requests stay in their sockets. When all that is ready was looked at the next round
 * begins, for which the longest parked source of each user is resumed. So a request waits for
 * one of each other user, and not for all connections of one of them.
 *
 * Each request is charged to its user. While others wait a user may take a tenth of the time.
 * A user who has taken more has no turn; one that is alone is not limited. Parking is charged
 * as a request is, but does not count among the few events.
 *
 * CPU time is charged, not elapsed time: a reply can wake a client that then has the
 * daemon's core for a while.
 */
#ifndef ROCADE_SERVER_CONTROL_H
#define ROCADE_SERVER_CONTROL_H

#include "server/server.h"

void control_init(struct rocade_daemon *d);

/* Packets moved. */
static inline void
control_packets_moved(struct rocade_daemon *d, uint64_t now)
{
	d->control.moved_ns = now;
}

/* Returns whether the daemon may look for events now. */
static inline bool
control_is_due(const struct rocade_daemon *d, uint64_t now)
{
	return now >= d->control.due_ns;
}

/* Returns how many events to handle before packets are moved again. */
unsigned control_events(const struct rocade_daemon *d, uint64_t now);
/* Returns whether to look for packets: events have been handled since begin_ns, for long
 * enough. */
bool control_events_end(uint64_t begin_ns, uint64_t now);
/* Events were handled, up to now, for took_ns. */
void control_pause(struct rocade_daemon *d, uint64_t now, uint64_t took_ns);

/* Returns whether a user's request is served now. */
bool control_may(
	const struct rocade_daemon *d, const struct account *account, uint64_t now);
/* A request of the user was served, or put off, up to now, in took_ns of CPU time. */
void control_charge(
	struct rocade_daemon *d, struct account *account, uint64_t now, uint64_t took_ns);

/* Leaves the requests of a connection in its socket for now, or its end, or that of a channel or process. */
void control_park(struct rocade_daemon *d, struct fd_source *source);
/* The source is closed. */
void control_forget(struct rocade_daemon *d, struct fd_source *source);
/* Returns whether something is parked. */
static inline bool
control_is_parked(const struct rocade_daemon *d)
{
	return !TAILQ_EMPTY(&d->control.parked);
}

/* Begins a round, in which each user has one turn. Resumes the longest parked source of each user who may
 * send requests again. Returns whether there was one. */
bool control_round(struct rocade_daemon *d, uint64_t now);
/* Returns whether a request or end of the user is served now: false if it has had its turn in this round, or
 * other sources of the user were parked before. */
bool control_turn_take(struct rocade_daemon *d, struct fd_source *source, uint64_t now);
/* Returns whether all that was ready in this round was looked at: nothing is ready (source is NULL), or a source
 * that is of no user comes again. Connections that wait to be accepted may be without end. */
bool control_round_is_over(const struct rocade_daemon *d, const struct fd_source *source);
/* Returns how long the daemon may sleep; TIME_NEVER: nothing is parked. */
uint64_t control_sleep_ns(const struct rocade_daemon *d);

#endif
