/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix: see matrix.h. */
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"

#define PORT_DEFAULT 18600

static const char usage[] =
	"usage: matrix (--listen ADDRESS | --connect ADDRESS | --loop) [--port N]\n"
	"              [--device NAME] [--gid-index N] [--path-mtu N] [--wait SECONDS]\n"
	"              [--only TEXT] [--skip CASE]... [--lossy] [--copies] [--quiet]\n"
	"              [--pause]\n"
	"              [DEVICE OPTION ...]\n"
	"Runs every service and opcode between two ends, and checks the data. One end\n"
	"listens, the other connects (TCP). --loop runs both ends in this process.\n"
	"--lossy: the wire loses packets. --copies: it also duplicates and reorders them.\n"
	"--pause: once the device is open, waits for a line of standard input.\n"
	"Exit status: 0 if no case failed.\n";

const char *
case_fail(struct matrix *t, const char *format, ...)
{
	va_list args;
	char text[sizeof(t->why)];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(t->why, text, sizeof(text));
	return t->why;
}

static void
case_report(struct matrix *t, const char *result, const char *name, const char *why)
{
	if (!t->verbose && strcmp(result, "FAIL") != 0)
		return;
	printf("%s %s (%s)%s%s\n", result, name, t->active ? "active" : "passive",
		why != NULL ? ": " : "", why != NULL ? why : "");
	fflush(stdout);
}

/* Exchanges the reasons why an end cannot run the case. Returns NULL if both can. */
static const char *
both_can(struct matrix *t, case_need need, const void *arg)
{
	char mine[OOB_MAX] = "", theirs[OOB_MAX];
	const char *why = need(t, arg);

	if (why != NULL)
		snprintf(mine, sizeof(mine), "%s", why);
	TRY(oob_swap(t, mine, theirs, sizeof(mine)));
	if (mine[0] == '\0' && theirs[0] == '\0')
		return NULL;
	return case_fail(t, "%.120s", mine[0] != '\0' ? mine : theirs);
}

static void
case_run(struct matrix *t, const char *name, case_fn fn, const void *arg)
{
	const char *why;

	t->seed++;
	t->peer_gave_up = false;
	why = fn(t, arg);
	why = oob_end(t, why == NULL);
	link_close(t);
	if (why == NULL)
		t->passed++;
	else
		t->failed++;
	case_report(t, why == NULL ? "PASS" : "FAIL", name, why);
}

/* Returns whether the command line excludes the case. It is the same at both ends. */
static bool
is_excluded(const struct matrix *t, const char *name)
{
	for (unsigned i = 0; i < t->skip_count; i++) {
		if (strcmp(name, t->skip[i]) == 0)
			return true;
	}
	return t->only != NULL && strstr(name, t->only) == NULL;
}

const char *
need_nothing(struct matrix *t, const void *arg)
{
	(void)arg;
	(void)t;
	return NULL;
}

void
matrix_case(
	struct matrix *t, const char *name, case_need need, case_fn fn, const void *arg)
{
	const char *why;

	if (t->lost || is_excluded(t, name))
		return;
	why = both_can(t, need, arg);
	if (t->lost) {
		t->failed++;
		printf("FAIL %s: %s\n", name, why);
		return;
	}
	if (why != NULL) {
		t->skipped++;
		t->active = false;
		if (t->verbose)
			printf("SKIP %s: %s\n", name, why);
		fflush(stdout);
		return;
	}
	t->active = !t->server;
	case_run(t, name, fn, arg);
	t->active = t->server;
	if (!t->lost)
		case_run(t, name, fn, arg);
}

/* The device */

static const char *
device_open(struct matrix *t)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned i = 0; list != NULL && list[i] != NULL && t->context == NULL; i++) {
		if (t->device_name == NULL ||
			strcmp(ibv_get_device_name(list[i]), t->device_name) == 0)
			t->context = ibv_open_device(list[i]);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return t->context != NULL ? NULL : "no such device";
}

static const char *
gid_choose(struct matrix *t)
{
	struct ibv_gid_entry entry;

	for (int i = t->gid_index >= 0 ? t->gid_index : 0; i < t->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(t->context, 1, (uint32_t)i, &entry, 0) != 0)
			continue;
		if (t->gid_index < 0 && entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		t->gid_index = i;
		t->gid = entry.gid;
		t->ifindex = entry.ndev_ifindex;
		return NULL;
	}
	return "no RoCE v2 GID, or none with this index";
}

static const char *
device_prepare(struct matrix *t)
{
	TRY(device_open(t));
	if (ibv_query_device_ex(t->context, NULL, &t->device) != 0 ||
		ibv_query_port(t->context, 1, &t->port) != 0)
		return "the device cannot be queried";
	TRY(gid_choose(t));
	t->pd = ibv_alloc_pd(t->context);
	t->send_cq = ibv_create_cq(t->context, 4 * MATRIX_WRS, NULL, NULL, 0);
	t->recv_cq = ibv_create_cq(t->context, 4 * MATRIX_WRS, NULL, NULL, 0);
	t->mem = aligned_alloc(4096, (MATRIX_BYTES + 4095) & ~(size_t)4095);
	if (t->pd == NULL || t->send_cq == NULL || t->recv_cq == NULL || t->mem == NULL)
		return "no PD, CQ or memory";
	memset(t->mem, 0, MATRIX_BYTES);
	t->mr = link_mr(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	return t->mr != NULL ? NULL : "no memory region";
}

/* Returns the number of objects that could not be destroyed. */
static int
device_close(struct matrix *t)
{
	int left = 0;

	if (t->context == NULL)
		return 0;
	left += t->mr != NULL && ibv_dereg_mr(t->mr) != 0;
	left += t->send_cq != NULL && ibv_destroy_cq(t->send_cq) != 0;
	left += t->recv_cq != NULL && ibv_destroy_cq(t->recv_cq) != 0;
	left += t->pd != NULL && ibv_dealloc_pd(t->pd) != 0;
	left += ibv_close_device(t->context) != 0;
	free(t->mem);
	return left;
}

static const char *
mtu_agree(struct matrix *t)
{
	uint32_t mine = t->port.active_mtu, theirs;

	while (t->mtu_most != 0 && mine > IBV_MTU_256 && 128u << mine > t->mtu_most)
		mine--;

	TRY(oob_swap(t, &mine, &theirs, sizeof(mine)));
	t->mtu_code = mine < theirs ? mine : theirs;
	t->mtu = 128u << t->mtu_code;
	return NULL;
}

/* The run */

static int
matrix_run(struct matrix *t)
{
	const char *why = device_prepare(t);
	int left;

	if (why == NULL)
		why = mtu_agree(t);
	if (why != NULL) {
		fprintf(stderr, "matrix: %s\n", why);
		device_close(t);
		return 2;
	}
	cases_transfer(t);
	cases_rc(t);
	cases_errors(t);
	cases_events(t);
	cases_stream(t);
	cases_datagram(t);
	cases_memory(t);
	cases_xrc(t);
	cases_wr(t);
	left = device_close(t);
	if (left != 0)
		printf("FAIL at the end: %d objects could not be destroyed\n", left);
	printf("%s: %u passed, %u failed, %u skipped, path MTU %u\n",
		t->server ? "server" : "client", t->passed, t->failed + (unsigned)left,
		t->skipped, t->mtu);
	return t->failed != 0 || left != 0 || t->passed == 0;
}

static void *
server_thread(void *arg)
{
	return (void *)(intptr_t)matrix_run(arg);
}

/* Runs both ends in this process. */
static int
loop_run(struct matrix *client)
{
	struct matrix server = *client;
	pthread_t thread;
	int socks[2], failed;
	void *result;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks) != 0)
		return 2;
	server.server = true;
	server.verbose = false;
	client->sock = socks[0];
	server.sock = socks[1];
	client->device_name = host_device(0);
	server.device_name = host_device(1);
	if (pthread_create(&thread, NULL, server_thread, &server) != 0)
		return 2;
	failed = matrix_run(client);
	pthread_join(thread, &result);
	close(socks[0]);
	close(socks[1]);
	return failed != 0 ? failed : (int)(intptr_t)result;
}

struct options {
	const char *listen, *connect;
	unsigned port;
	bool loop, pause;
};

static int
options_read(int argc, char **argv, struct matrix *t, struct options *o)
{
	static const struct option names[] = {
		{"listen", required_argument, NULL, 'l'},
		{"connect", required_argument, NULL, 'c'},
		{"port", required_argument, NULL, 'p'},
		{"device", required_argument, NULL, 'd'},
		{"gid-index", required_argument, NULL, 'g'},
		{"only", required_argument, NULL, 'o'},
		{"path-mtu", required_argument, NULL, 'm'},
		{"wait", required_argument, NULL, 'w'},
		{"skip", required_argument, NULL, 's'},
		{"lossy", no_argument, NULL, 'x'},
		{"copies", no_argument, NULL, 'C'},
		{"quiet", no_argument, NULL, 'q'},
		{"loop", no_argument, NULL, 'L'},
		{"pause", no_argument, NULL, 'P'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'l':
			o->listen = optarg;
			break;
		case 'c':
			o->connect = optarg;
			break;
		case 'p':
			o->port = (unsigned)atoi(optarg);
			break;
		case 'd':
			t->device_name = optarg;
			break;
		case 'g':
			t->gid_index = atoi(optarg);
			break;
		case 'o':
			t->only = optarg;
			break;
		case 'm':
			t->mtu_most = (uint32_t)atoi(optarg);
			break;
		case 'w':
			t->wait_s = (unsigned)atoi(optarg);
			if (t->wait_s == 0 || t->wait_s > MATRIX_WAIT_MOST)
				return -1;
			break;
		case 's':
			if (t->skip_count == MATRIX_SKIPS)
				return -1;
			t->skip[t->skip_count++] = optarg;
			break;
		case 'x':
			t->lossy = true;
			break;
		case 'C':
			t->lossy = t->copies = true;
			break;
		case 'q':
			t->verbose = false;
			break;
		case 'L':
			o->loop = true;
			break;
		case 'P':
			o->pause = true;
			break;
		default:
			return -1;
		}
	}
	return (o->listen != NULL) + (o->connect != NULL) + o->loop == 1 ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct options o = {.port = PORT_DEFAULT};
	struct matrix t = {.gid_index = -1, .verbose = true, .wait_s = MATRIX_WAIT};
	const char *why;
	int result = 2;

	if (options_read(argc, argv, &t, &o) != 0) {
		fputs(usage, stderr);
		return 2;
	}
	why = host_open(argv + optind, (unsigned)(argc - optind), o.loop);
	if (why != NULL) {
		fprintf(stderr, "matrix: %s\n", why);
		host_close();
		return 2;
	}
	printf("# the device is there\n");
	fflush(stdout);
	while (o.pause && getchar() != '\n' && feof(stdin) == 0)
		clearerr(stdin); /* a signal of a tap port interrupted it */
	if (o.loop) {
		result = loop_run(&t);
	} else {
		t.server = o.listen != NULL;
		if (t.device_name == NULL)
			t.device_name = host_device(0);
		t.sock = t.server ? oob_listen(o.listen, o.port)
				  : oob_connect(o.connect, o.port);
		if (t.sock < 0)
			fprintf(stderr, "matrix: no connection to the other end\n");
		else
			result = matrix_run(&t);
		/* net_memif of DPDK 22.11 unmaps memory that is still polled when its
		 * peer closes. */
		host_stop();
		if (t.sock >= 0 && !t.lost)
			(void)oob_sync(&t);
		close(t.sock);
	}
	if (result != 0)
		host_report();
	host_close();
	return result;
}
