/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>

#include <jansson.h>

#include <rocade/pcapng.h>

#include "interfaces.h"

/* Writes program and process of the client, if it still is there. */
static void
describe(struct rocade_dump *dump, uint32_t id, char *text, size_t size)
{
	char *rows_text = rocade_dump_client(dump, id);
	json_t *rows = rows_text != NULL ? json_loads(rows_text, 0, NULL) : NULL;
	const json_t *client = json_array_get(rows, 0);
	const char *name = json_string_value(json_object_get(client, "name"));
	json_int_t pid = json_integer_value(json_object_get(client, "pid"));
	char process[24] = "unknown process";

	/* 0: the process is in another PID namespace than the daemon. */
	if (pid != 0)
		snprintf(process, sizeof(process), "process %" JSON_INTEGER_FORMAT, pid);
	if (name != NULL && json_integer_value(json_object_get(client, "id")) == id)
		snprintf(text, size, "%s, %s, user %" JSON_INTEGER_FORMAT, name, process,
			json_integer_value(json_object_get(client, "uid")));
	else
		snprintf(text, size, "a client that has ended");
	json_decref(rows);
	free(rows_text);
}

uint32_t
interface_of(struct interfaces *all, FILE *to, uint32_t client, struct rocade_dump *dump,
	uint32_t snap)
{
	char name[32], description[128];
	struct interface *rows;

	for (uint32_t i = 0; i < all->count; i++) {
		if (all->rows[i].client == client)
			return i;
	}
	rows = realloc(all->rows, (all->count + 1) * sizeof(*rows));
	if (rows == NULL)
		return UINT32_MAX;
	rows[all->count] = (struct interface){.client = client};
	all->rows = rows;
	snprintf(name, sizeof(name), "client %" PRIu32, client);
	describe(dump, client, description, sizeof(description));
	pcapng_interface(to, name, description, snap);
	return all->count++;
}
