/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state over DPDK telemetry, by a thread of EAL. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include <rocade/status.h>

#include "own_status.h"
#include "settings.h"

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define dict_number rte_tel_data_add_dict_uint
#else
#define dict_number rte_tel_data_add_dict_u64
#endif

/* Rows of a list: a reply is limited to 16 KiB, and a peer's row has up to 450 bytes. */
#define ROWS 32

static struct rte_tel_data *data_from_json(const json_t *value);

static void
dict_add(struct rte_tel_data *d, const char *name, const json_t *value)
{
	struct rte_tel_data *inner;
	char text[32];

	switch (json_typeof(value)) {
	case JSON_INTEGER:
		dict_number(d, name, (uint64_t)json_integer_value(value));
		break;
	case JSON_REAL: /* there is no such type */
		snprintf(text, sizeof(text), "%.2f", json_real_value(value));
		rte_tel_data_add_dict_string(d, name, text);
		break;
	case JSON_STRING:
		rte_tel_data_add_dict_string(d, name, json_string_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		dict_number(d, name, json_is_true(value));
		break;
	case JSON_OBJECT:
	case JSON_ARRAY:
		inner = data_from_json(value);
		if (inner != NULL &&
			rte_tel_data_add_dict_container(d, name, inner, 0) != 0)
			rte_tel_data_free(inner);
		break;
	default:
		break;
	}
}

static void
dict_fill(struct rte_tel_data *d, const json_t *object)
{
	const char *name;
	json_t *value;

	rte_tel_data_start_dict(d);
	json_object_foreach((json_t *)object, name, value) dict_add(d, name, value);
}

static void
texts_fill(struct rte_tel_data *d, const json_t *array)
{
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (size_t i = 0; i < json_array_size(array); i++)
		rte_tel_data_add_array_string(
			d, json_string_value(json_array_get(array, i)));
}

/* Adds the rows from index `first` on, up to ROWS, keyed by their member `number`, or by
 * their index if that is NULL. (An array of dictionaries comes out empty in DPDK 22.11.) */
static void
rows_fill(struct rte_tel_data *d, const json_t *list, const char *number, size_t first)
{
	rte_tel_data_start_dict(d);
	for (size_t i = first; i < json_array_size(list) && i - first < ROWS; i++) {
		const json_t *row = json_array_get(list, i);
		char name[24];

		snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT,
			number != NULL ? json_integer_value(json_object_get(row, number))
				       : (json_int_t)i);
		dict_add(d, name, row);
	}
}

static struct rte_tel_data *
data_from_json(const json_t *value)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d != NULL && json_is_object(value))
		dict_fill(d, value);
	else if (d != NULL)
		texts_fill(d, value);
	return d;
}

/* Returns NULL if the daemon does not answer. */
static json_t *
state_fetch(void)
{
	char *text = own_status_text(true);
	json_t *state = text != NULL ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return state;
}

static const json_t *
daemon_of(const json_t *state, const char *part)
{
	return json_object_get(json_object_get(state, "daemon"), part);
}

/* Adds the value by its name. EAL takes only letters, digits, '_' and '/' in a name: other
 * characters become '_'. */
static void
named_add(struct rte_tel_data *d, const char *name, const json_t *value)
{
	char key[ROCADE_NAME_MAX];

	snprintf(key, sizeof(key), "%s", name);
	for (char *c = key; *c != '\0'; c++) {
		if (!isalnum((unsigned char)*c))
			*c = '_';
	}
	dict_add(d, key, value);
}

static int
on_devices(const char *command, const char *params, struct rte_tel_data *d)
{
	json_t *state = state_fetch();
	const json_t *device = daemon_of(state, "device");

	(void)command;
	(void)params;
	if (device != NULL) {
		rte_tel_data_start_dict(d);
		named_add(d, json_string_value(json_object_get(device, "name")), device);
	}
	json_decref(state);
	return device != NULL ? 0 : -EIO;
}

/* Lists the ids of the clients. */
static int
on_clients(const char *command, const char *params, struct rte_tel_data *d)
{
	json_t *state = state_fetch();
	const json_t *client;
	size_t i;

	(void)command;
	(void)params;
	if (state == NULL)
		return -EIO;
	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	json_array_foreach(daemon_of(state, "clients"), i, client)
		rte_tel_data_add_array_int(
			d, (int)json_integer_value(json_object_get(client, "id")));
	json_decref(state);
	return 0;
}

/* Returns the entry whose id is the parameter of the command, or NULL. */
static const json_t *
find_by_id(const json_t *list, const char *params)
{
	const json_t *client;
	char *end;
	json_int_t id;
	size_t i;

	if (params == NULL || params[0] == '\0')
		return NULL;
	id = strtoll(params, &end, 10);
	json_array_foreach(list, i, client)
	{
		if ((*end == '\0' || *end == ',') &&
			json_integer_value(json_object_get(client, "id")) == id)
			return client;
	}
	return NULL;
}

static int
on_client(const char *command, const char *params, struct rte_tel_data *d)
{
	json_t *state = state_fetch();
	const json_t *client = find_by_id(daemon_of(state, "clients"), params);
	const json_t *report = find_by_id(json_object_get(state, "reports"), params);
	int rc = client != NULL ? 0 : -EINVAL;

	(void)command;
	if (client != NULL)
		dict_fill(d, client);
	if (client != NULL && report != NULL) {
		dict_add(d, "answered", json_object_get(report, "answered"));
		dict_add(d, "srq_count", json_object_get(report, "srq_count"));
		dict_add(d, "peer_count", json_object_get(report, "peer_count"));
		dict_add(d, "engine", json_object_get(report, "engine"));
	}
	json_decref(state);
	return rc;
}

static int
list_answer(
	const char *list, const char *number, const char *params, struct rte_tel_data *d)
{
	const char *comma = params != NULL ? strchr(params, ',') : NULL;
	size_t first = comma != NULL ? strtoul(comma + 1, NULL, 10) : 0;
	json_t *state = state_fetch();
	const json_t *report = find_by_id(json_object_get(state, "reports"), params);

	if (report != NULL)
		rows_fill(d, json_object_get(report, list), number, first);
	json_decref(state);
	return report != NULL ? 0 : -EINVAL;
}

static int
on_srqs(const char *command, const char *params, struct rte_tel_data *d)
{
	(void)command;
	return list_answer("srqs", "srqn", params, d);
}

static int
on_qps(const char *command, const char *params, struct rte_tel_data *d)
{
	(void)command;
	return list_answer("qps", "qpn", params, d);
}

static int
on_peers(const char *command, const char *params, struct rte_tel_data *d)
{
	(void)command;
	return list_answer("peers", NULL, params, d);
}

void
telemetry_start(void)
{
	static const struct {
		const char *command;
		telemetry_cb answer;
		const char *help;
	} all[] = {
		{"/rocade/devices", on_devices, "The daemon's devices. No parameters."},
		{"/rocade/clients", on_clients, "The clients' ids. No parameters."},
		{"/rocade/client", on_client,
			"A client and its counters. Parameters: id"},
		{"/rocade/srqs", on_srqs,
			"Up to 32 SRQs of a client. Parameters: id[,from]"},
		{"/rocade/qps", on_qps,
			"Up to 32 QPs of a client. Parameters: id[,from]"},
		{"/rocade/peers", on_peers,
			"Up to 32 hosts that a client sends to. Parameters: id[,from]"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		(void)rte_telemetry_register_cmd(
			all[i].command, all[i].answer, all[i].help);
}
