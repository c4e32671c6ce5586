/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include <common/number.h>

#include "qp_events.h"
#include "snapshot.h"

#define QPN_MAX 0xffffff

bool
flight_conf_read(struct flight_conf *conf, const char *value)
{
	const char *colon = strchrnul(value, ':');
	uint64_t id, qpn = 0;
	char text[16];

	snprintf(text, sizeof(text), "%.*s", (int)(colon - value), value);
	if (colon - value >= (ptrdiff_t)sizeof(text) ||
		!parse_number(text, 1, UINT32_MAX, &id) ||
		(*colon != '\0' && !parse_number(colon + 1, 1, QPN_MAX, &qpn)))
		return false;
	*conf = (struct flight_conf){.client = (uint32_t)id, .qpn = (uint32_t)qpn};
	return true;
}

static void
event_line_print(const char *text, void *arg)
{
	fprintf(arg, "%s\n", text);
}

/* Returns the client's rows of QPs, or NULL. */
static json_t *
qps_of(const json_t *snapshot, uint32_t id)
{
	json_t *client;
	size_t i;

	json_array_foreach(json_object_get(snapshot, "clients"), i, client)
	{
		if (number_of(client, "id") == id)
			return json_object_get(client, "qps");
	}
	return NULL;
}

/* Returns the number of QPs, or -1. A QP that has gone meanwhile is left out. */
static int
all_show(FILE *to, const char *socket, uint32_t client, json_t *qps, const char **why)
{
	int shown = 0;
	json_t *qp;
	size_t i;

	json_array_foreach(qps, i, qp)
	{
		int err = rocade_flight(socket, client, (uint32_t)number_of(qp, "qpn"),
			event_line_print, to);

		if (err != 0 && err != ENOENT) {
			*why = rocade_error();
			return -1;
		}
		shown += err == 0;
	}
	return shown;
}

bool
flight_show(
	FILE *to, const char *socket, const struct flight_conf *conf, const char **why)
{
	json_t *snapshot, *qps;
	int shown = -1;

	*why = "there is no such client, or it is not one of this user's, or it does not "
	       "answer";
	if (conf->qpn != 0) {
		if (rocade_flight(
			    socket, conf->client, conf->qpn, event_line_print, to) == 0)
			return true;
		*why = rocade_error();
		return false;
	}
	snapshot = snapshot_fetch(socket);
	if (snapshot == NULL) {
		*why = rocade_error();
		return false;
	}
	qps = qps_of(snapshot, conf->client);
	if (qps != NULL) {
		shown = all_show(to, socket, conf->client, qps, why);
		if (shown == 0)
			*why = "the client has no QPs";
	}
	json_decref(snapshot);
	return shown > 0;
}
