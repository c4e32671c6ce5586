/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_flight(): the record of a QP of a client, for programs that are no clients. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <rocade/status.h>

#include "base/common.h"
#include "shm/session.h"
#include "verbs/export.h"

#define ANSWER_TIMEOUT_MS 200 /* for a client whose process is not running just now */
#define ANSWER_POLL_MS 2

/* Copies what the client has answered. Returns -EPROTO if it is not about this QP. */
static int
answer_take(const struct sw_data_reply *reply, uint32_t qpn, struct report_flight *flight)
{
	if (reply->len != sizeof(*flight))
		return -EPROTO;
	memcpy(flight, reply->bytes, sizeof(*flight));
	if (flight->state == REPORT_FLIGHT_NO_QP)
		return -ENOENT;
	if (flight->state == REPORT_FLIGHT_OFF)
		return -ENOTSUP;
	return flight->copy.qpn == qpn ? 0 : -EPROTO;
}

static int
flight_fetch(
	struct session *s, const struct sw_request *ask, struct report_flight *flight)
{
	const struct timespec pause = {.tv_nsec = ANSWER_POLL_MS * NS_PER_MS};
	struct sw_request fetch = {.type = SW_FLIGHT, .qpn = ask->qpn};
	struct sw_data_reply answer;
	struct sw_reply reply;
	int rc = -ECANCELED;

	for (unsigned ms = 0; ms < ANSWER_TIMEOUT_MS; ms += ANSWER_POLL_MS) {
		if (rc == -ECANCELED) { /* not asked yet, or another program has asked */
			rc = session_call(s, ask, &reply, NULL, 0);
			if (rc != 0)
				return rc;
			fetch.dest_qpn = reply.qpn;
		}
		(void)nanosleep(&pause, NULL);
		rc = session_fetch(s, &fetch, &answer);
		if (rc == 0)
			return answer_take(&answer, ask->dest_qpn, flight);
		if (rc != -EAGAIN && rc != -ECANCELED)
			return rc;
	}
	return -ETIMEDOUT;
}

static int
flight_fail(
	const struct session *s, const char *socket, const struct sw_request *ask, int rc)
{
	char text[SESSION_TEXT];

	if (rc == -ENOENT)
		return rocade_fail(ENOENT,
			"client %" PRIu32 " has no QP 0x%06" PRIx32
			", or is not one of this user's clients",
			ask->qpn, ask->dest_qpn);
	if (rc == -ENOTSUP)
		return rocade_fail(ENOTSUP,
			"client %" PRIu32 " keeps no events: start it with "
			"ROCADE_FLIGHT_RECORDER=1 in its environment",
			ask->qpn);
	if (rc == -ETIMEDOUT)
		return rocade_fail(ETIMEDOUT,
			"client %" PRIu32 " has not answered within %d ms", ask->qpn,
			ANSWER_TIMEOUT_MS);
	session_error_text(s, socket, rc, text, sizeof(text));
	return rocade_fail(-rc, "%s", text);
}

int
rocade_flight(const char *socket, uint32_t client, uint32_t qpn,
	void (*line)(const char *text, void *arg), void *arg)
{
	const struct sw_request ask = {
		.type = SW_FLIGHT_REQUEST, .qpn = client, .dest_qpn = qpn};
	struct report_flight flight;
	struct session s;
	char text[SESSION_TEXT];
	int rc = session_open(&s, socket);

	if (rc != 0) {
		session_error_text(&s, socket, rc, text, sizeof(text));
		return rocade_fail(-rc, "%s", text);
	}
	rc = flight_fetch(&s, &ask, &flight);
	session_close(&s);
	if (rc != 0)
		return flight_fail(&s, socket, &ask, rc);
	flight_print(&flight.copy, line, arg);
	return 0;
}
