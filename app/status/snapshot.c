/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include <rocade/status.h>

#include "snapshot.h"

double
number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static json_t *
client_find(const json_t *clients, double id)
{
	json_t *client;
	size_t i;

	json_array_foreach(clients, i, client)
	{
		if (number_of(client, "id") == id)
			return client;
	}
	return NULL;
}

json_t *
snapshot_fetch(const char *socket)
{
	char *text;

	errno = rocade_status(socket, &text);
	return errno == 0 ? snapshot_read(text) : NULL;
}

json_t *
snapshot_read(char *text)
{
	json_t *all = json_loads(text, 0, NULL), *daemon, *clients, *report;
	size_t i;

	free(text);
	daemon = json_object_get(all, "daemon");
	clients = json_object_get(daemon, "clients");
	json_array_foreach(json_object_get(all, "reports"), i, report)
	{
		json_t *client = client_find(clients, number_of(report, "id"));

		if (client != NULL)
			json_object_update_missing(client, report);
	}
	json_object_update_missing(daemon, all);
	json_object_del(daemon, "daemon");
	json_object_del(daemon, "reports");
	json_incref(daemon);
	json_decref(all);
	return daemon;
}

void
snapshot_rates(json_t *now, const json_t *before, double seconds)
{
	static const char *const counters[] = {"tx_packets", "tx_bytes", "rx_packets",
		"rx_bytes", "rx_full", "pair_packets", "pair_bytes"};
	const json_t *old = json_object_get(before, "clients");
	json_t *client;
	size_t i;

	if (seconds <= 0)
		return;
	json_array_foreach(json_object_get(now, "clients"), i, client)
	{
		const json_t *was = client_find(old, number_of(client, "id"));
		json_t *rates = json_object();

		for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++)
			json_object_set_new(rates, counters[c],
				json_real((number_of(client, counters[c]) -
						  number_of(was, counters[c])) /
					  seconds));
		json_object_set_new(client, "rates", rates);
	}
}
