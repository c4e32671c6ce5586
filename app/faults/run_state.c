/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <jansson.h>

#include <status/snapshot.h>

#include "run_state.h"

#define SOCKETS_MAX 16 /* daemons of a command; of more the state is not seen */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

struct sockets {
	char paths[SOCKETS_MAX][sizeof(((struct sockaddr_un *)0)->sun_path)];
	unsigned count;
	bool of_all;
};

static void
state_add(uint64_t *state, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		*state = (*state ^ bytes[i]) * FNV_PRIME;
}

static void
state_number_add(uint64_t *state, uint64_t number)
{
	state_add(state, &number, sizeof(number));
}

static void
member_add(uint64_t *state, const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);

	if (text != NULL)
		state_add(state, text, strlen(text));
	else
		state_number_add(state, (uint64_t)json_number_value(value));
}

/* Packets do not count: a QP may send without end to a peer that does not answer. */
static void
client_state_add(uint64_t *state, const json_t *client)
{
	static const char *const members[] = {
		"qpn", "state", "dest_qpn", "tx_msgs", "rx_msgs", "timeouts"};
	const json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(client, "qps"), i, qp)
	{
		for (size_t m = 0; m < sizeof(members) / sizeof(members[0]); m++)
			member_add(state, qp, members[m]);
	}
}

static bool
has_pid(const struct process_tree *t, double pid)
{
	for (unsigned i = 0; i < t->count; i++) {
		if (t->all[i].pid == (pid_t)pid)
			return true;
	}
	return false;
}

static void
daemon_add(uint64_t *state, const struct process_tree *t, const char *socket)
{
	static const char *const members[] = {
		"ids", "listeners", "groups", "established", "disconnected"};
	json_t *all = snapshot_fetch(socket), *cm = json_object_get(all, "rdma_cm");
	const json_t *client;
	bool others = false;
	size_t i;

	json_array_foreach(json_object_get(all, "clients"), i, client)
	{
		if (has_pid(t, number_of(client, "pid")))
			client_state_add(state, client);
		else
			others = true;
	}
	/* These are of all clients: others would hide that the command hangs. */
	for (size_t m = 0; !others && m < sizeof(members) / sizeof(members[0]); m++)
		member_add(state, cm, members[m]);
	json_decref(all);
}

/* Adds the socket that a process was told to use. Of the others it is that of all programs. */
static void
socket_find(struct sockets *s, pid_t pid)
{
	char path[sizeof(s->paths[0])];

	if (!process_variable(pid, "ROCADE_SOCKET", path, sizeof(path))) {
		s->of_all = true;
		return;
	}
	if (s->count == SOCKETS_MAX)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		if (strcmp(s->paths[i], path) == 0)
			return;
	}
	memcpy(s->paths[s->count++], path, sizeof(path));
}

uint64_t
run_state(const struct process_tree *t, const char *const *files)
{
	struct sockets sockets = {.count = 0};
	uint64_t state = FNV_BASIS;
	struct stat st;

	for (unsigned i = 0; i < t->count; i++) {
		state_number_add(&state, (uint64_t)t->all[i].pid);
		socket_find(&sockets, t->all[i].pid);
	}
	for (unsigned i = 0; files[i] != NULL; i++)
		state_number_add(
			&state, stat(files[i], &st) == 0 ? (uint64_t)st.st_size : 0);
	for (unsigned i = 0; i < sockets.count; i++)
		daemon_add(&state, t, sockets.paths[i]);
	if (sockets.of_all)
		daemon_add(&state, t, NULL);
	return state;
}
