/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the daemon's descriptors: serves them, and charges the time to their users. */
#include <sys/socket.h>
#include <unistd.h>

#include "engine/clock.h"
#include "server/server_conn.h"
#include "server/server_control.h"
#include "server/server_events.h"
#include "server/server_own.h"
#include "server/server_rdmacm.h"

static void
stop_event_read(struct rocade_daemon *d)
{
	uint64_t count;
	ssize_t got = read(d->stop.fd, &count, sizeof(count));

	(void)got;
	d->stopping = true;
}

/* Charges the time of an event to the account, NULL: to none. *cpu_ns: the thread's CPU time when the
 * event began; set to that at its end, where the next event begins. */
static void
time_charge(struct rocade_daemon *d, struct account *account, uint64_t *cpu_ns)
{
	uint64_t end = clock_thread_cpu();

	if (account != NULL)
		control_charge(d, account, clock_now(), end - *cpu_ns);
	*cpu_ns = end;
}

/* The same for an event that is a request of the user, or the end of something of that user's. */
static void
request_charge(struct rocade_daemon *d, struct account *account, uint64_t *cpu_ns)
{
	if (account != NULL)
		account->requests++;
	time_charge(d, account, cpu_ns);
}

/* A request, or an end, of a client. Returns false if it was parked instead. */
static bool
client_serve(struct rocade_daemon *d, struct fd_source *source, uint64_t *cpu_ns)
{
	struct conn *conn = source->conn;
	struct account *account = conn->account;
	uint64_t now = clock_now();

	/* One that is parked already has ended. */
	if (source->parked || !control_may(d, account, now) ||
		!control_turn_take(d, source, now)) {
		control_park(d, source);
		time_charge(d, account, cpu_ns);
		return false;
	}
	account->holders++; /* the connection may end */
	if (source->kind == FD_SOURCE_CLIENT)
		conn_ready(conn);
	else if (source->kind == FD_SOURCE_PROCESS)
		conn_close(conn);
	else
		rdmacm_channel(source);
	request_charge(d, account, cpu_ns);
	account_close(account);
	return true;
}

/* Returns false if nothing was served: the source waits for its user's turn. */
static bool
fd_source_serve(struct rocade_daemon *d, struct fd_source *source, uint64_t *cpu_ns)
{
	switch (source->kind) {
	case FD_SOURCE_LISTEN:
		request_charge(d, conn_accept(d), cpu_ns);
		break;
	case FD_SOURCE_OWN:
		request_charge(d, own_accept(d), cpu_ns);
		break;
	case FD_SOURCE_STOP:
		stop_event_read(d);
		break;
	case FD_SOURCE_CLIENT:
	case FD_SOURCE_PROCESS:
	case FD_SOURCE_CM_CHANNEL:
		return client_serve(d, source, cpu_ns);
	case FD_SOURCE_WAKE: /* in no set for serving */
		break;
	case FD_SOURCE_CM_TIMER:
		rdmacm_timer(d);
		break;
	}
	return true;
}

/* Returns the next source that is ready, of the next round if this one is over. NULL: nothing is ready that may
 * be served. */
static struct fd_source *
source_next(struct rocade_daemon *d)
{
	struct fd_source *source = fd_sets_next(&d->sets[0]);

	if (control_round_is_over(d, source) && control_round(d, clock_now()) &&
		source == NULL)
		source = fd_sets_next(&d->sets[0]);
	if (source != NULL)
		source->round = d->control.round;
	return source;
}

void
events_serve(struct rocade_daemon *d, uint64_t timeout_ns)
{
	struct fd_source *source = NULL;
	uint64_t begin_ns, cpu_ns, now = clock_now();
	unsigned left = control_events(d, now);

	if (fd_sets_wait(&d->sets[0], timeout_ns) || control_is_parked(d))
		source = source_next(d);
	if (source == NULL) {
		conn_reap(d); /* and no system calls for the CPU time */
		return;
	}
	begin_ns = cpu_ns = clock_thread_cpu();
	d->sw->now = now = clock_now();
	passed_fds_collect(&d->passed); /* a request may need the room */
	passed_fds_look(&d->passed);
	/* Only what is served counts: a user may have thousands of connections ready, which are parked
	 * until their turn. A few at a time, they would be in front of others for many passes. */
	do
		left -= fd_source_serve(d, source, &cpu_ns);
	while (left != 0 && !control_events_end(now, clock_now()) &&
		(source = source_next(d)) != NULL);
	conn_reap(d);
	control_pause(d, clock_now(), clock_thread_cpu() - begin_ns);
}
