/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the state of the first device's port, and so again at each asynchronous event, until it has seen this many: it
 * knows nothing of faults. For faults_link.py.
 *
 *   fault_port EVENTS
 *
 * A line each: "event TYPE", and "state STATE PHYS_STATE, FILE, FILE", with the files state and phys_state of the port in
 * /sys/class/infiniband.
 */
#include <signal.h>
#include <sys/prctl.h>

#include <infiniband/verbs.h>

#include "fault_calls.h"

static void
file_print(const struct ibv_context *context, const char *name, const char *end)
{
	char path[512], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s",
		ibv_get_device_name(context->device), name);
	file = fopen(path, "re");
	check_pointer(name, file);
	check_other(name, fgets(text, sizeof(text), file) != NULL);
	fclose(file);
	printf(", %.*s%s", (int)strcspn(text, "\n"), text, end);
}

static void
state_print(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	check("query_port", ibv_query_port(context, 1, &attr));
	printf("state %u %u", attr.state, attr.phys_state);
	file_print(context, "state", "");
	file_print(context, "phys_state", "\n");
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_async_event event;
	struct ibv_context *context;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 2)
		return 2;
	check_other("no device", list != NULL && list[0] != NULL);
	context = ibv_open_device(list[0]);
	check_pointer("open_device", context);
	ibv_free_device_list(list);
	state_print(context);
	for (int i = atoi(argv[1]); i > 0; i--) {
		check_minus("get_async_event", ibv_get_async_event(context, &event));
		printf("event %u\n", event.event_type);
		ibv_ack_async_event(&event);
		state_print(context);
	}
	check("close_device", ibv_close_device(context));
	return 0;
}
