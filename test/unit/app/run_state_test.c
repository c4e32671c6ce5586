/* SPDX-License-Identifier: BSD-3-Clause */
/* Which changes of a daemon are changes of a command. */
#include <stdio.h>
#include <string.h>

#include <faults/run_state.h>
#include <status/snapshot.h>

#include "case.h"

static char shown[512];  /* of the daemon */
static char asked[64];   /* sockets that were asked */
static const char *told; /* the socket that process 7 was told */

json_t *
snapshot_fetch(const char *socket)
{
	size_t len = strlen(asked);

	snprintf(asked + len, sizeof(asked) - len, "%s ", socket != NULL ? socket : "-");
	return json_loads(shown, 0, NULL);
}

double
number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

bool
process_variable(pid_t pid, const char *name, char *out, size_t size)
{
	if (pid != 7 || told == NULL || strcmp(name, "ROCADE_SOCKET") != 0)
		return false;
	snprintf(out, size, "%s", told);
	return true;
}

/* of: a process of the command, 7 or 8, or another one. */
static uint64_t
state_with(unsigned of, unsigned messages, unsigned established)
{
	static struct tree_process all[] = {{.pid = 7}, {.pid = 8}};
	static const char *const none[] = {NULL};
	const struct process_tree tree = {.all = all, .count = 2};

	snprintf(shown, sizeof(shown),
		"{\"clients\": [{\"pid\": 7, \"qps\": []}, {\"pid\": %u, \"qps\": [{\"qpn\": "
		"5, \"state\": \"RTS\", \"tx_msgs\": %u}]}], \"rdma_cm\": {\"established\": "
		"%u}}",
		of, messages, established);
	asked[0] = '\0';
	return run_state(&tree, none);
}

TEST(completions_of_the_command_are_a_change_and_those_of_others_are_none)
{
	assert_int_equal(state_with(8, 1, 0), state_with(8, 1, 0));
	assert_true(state_with(8, 1, 0) != state_with(8, 2, 0));
	assert_int_equal(state_with(9, 1, 0), state_with(9, 2, 0));
}

TEST(connections_count_only_if_the_daemon_has_no_other_clients)
{
	assert_true(state_with(8, 1, 0) != state_with(8, 1, 1));
	assert_int_equal(state_with(9, 1, 0), state_with(9, 1, 1));
}

TEST(the_default_daemon_is_asked_too_if_a_process_has_no_other)
{
	told = "/s";
	state_with(8, 1, 0);
	assert_string_equal(asked, "/s - ");
	told = NULL;
	state_with(8, 1, 0);
	assert_string_equal(asked, "- ");
}
