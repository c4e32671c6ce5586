/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocade/status.h>

#include "snapshot.h"

double
number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

#define ID_TEXT 32

static const char *
id_text(const json_t *object, char text[ID_TEXT])
{
	snprintf(text, ID_TEXT, "%.0f", number_of(object, "id"));
	return text;
}

/* Returns the clients of an array by their numbers, in a hash table: there may be 65,536 of them. */
static json_t *
clients_by_id(const json_t *clients)
{
	json_t *by_id = json_object(), *client;
	char text[ID_TEXT];
	size_t i;

	json_array_foreach(clients, i, client)
		json_object_set(by_id, id_text(client, text), client);
	return by_id;
}

/* Returns the client with the number of an object, or NULL. */
static json_t *
client_find(const json_t *by_id, const json_t *object)
{
	char text[ID_TEXT];

	return json_object_get(by_id, id_text(object, text));
}

/* Moves each row of this key to its client. Clients without one have an empty one. departed: the key of the row of departed
 * clients, whose id is 0; NULL: there is none. */
static void
rows_merge(json_t *daemon, const json_t *by_id, const char *key, const char *departed)
{
	const json_t *row;
	json_t *client;
	size_t i;

	json_array_foreach(json_object_get(daemon, "clients"), i, client)
		json_object_set_new(client, key, json_array());

	json_array_foreach(json_object_get(daemon, key), i, row)
	{
		json_t *found = json_object_get(row, key);

		client = client_find(by_id, row);
		if (number_of(row, "id") == 0 && departed != NULL)
			json_object_set(daemon, departed, found);
		else if (client != NULL)
			json_object_set(client, key, found);
	}
	json_object_del(daemon, key);
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
	json_t *all = json_loads(text, 0, NULL), *daemon, *by_id, *report;
	size_t i;

	free(text);
	daemon = json_object_get(all, "daemon");
	by_id = clients_by_id(json_object_get(daemon, "clients"));
	json_array_foreach(json_object_get(all, "reports"), i, report)
	{
		json_t *client = client_find(by_id, report);

		if (client != NULL)
			json_object_update_missing(client, report);
	}
	rows_merge(daemon, by_id, "latencies", "departed_latencies");
	rows_merge(daemon, by_id, "slowest", NULL);
	json_decref(by_id);
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
	json_t *old, *client;
	size_t i;

	if (seconds <= 0)
		return;
	old = clients_by_id(json_object_get(before, "clients"));
	json_array_foreach(json_object_get(now, "clients"), i, client)
	{
		const json_t *was = client_find(old, client);
		json_t *rates = json_object();

		for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++)
			json_object_set_new(rates, counters[c],
				json_real((number_of(client, counters[c]) -
						  number_of(was, counters[c])) /
					  seconds));
		json_object_set_new(client, "rates", rates);
	}
	json_decref(old);
}
