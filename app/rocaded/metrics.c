/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <status/latencies_sum.h>
#include <status/prometheus.h>
#include <status/snapshot.h>

#include "http_server.h"
#include "metrics.h"
#include "own_status.h"

#define WAITING 16 /* connections that are not accepted yet */

static struct http_server server = {.listen_fd = -1, .stop_fd = -1};
static struct metrics_address bound; /* with a file, which is to be removed */
static pthread_t thread;
static bool runs;
static json_t *latencies; /* of the thread: the last sums */

/* Without QPs, peers and the latencies of each client: how many there are is the clients' choice. Of latencies with
 * the sum. */
static char *
metrics_make(bool openmetrics, size_t *size)
{
	const struct view_conf all_clients = {
		.qps = false, .peers = false, .latencies = false};
	char *status = own_status_text(false), *text = NULL;
	struct metrics_to to = {.openmetrics = openmetrics};
	json_t *snapshot;

	if (status == NULL)
		return NULL;
	snapshot = snapshot_read(status);
	if (latencies == NULL)
		latencies = json_array();
	if (snapshot != NULL) {
		latencies_sum(snapshot, latencies);
		to.file = open_memstream(&text, size);
	}
	if (to.file != NULL) {
		prometheus_print(&to, snapshot, &all_clients);
		if (fclose(to.file) != 0) {
			free(text);
			text = NULL;
		}
	}
	json_decref(snapshot);
	return text;
}

static uint64_t
ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *
metrics_main(void *arg)
{
	(void)arg;
	(void)pthread_setname_np(pthread_self(), "metrics");
	while (http_wait(&server, ms_now()))
		http_handle(&server, ms_now());
	return NULL;
}

/* Ends with the error errno. */
static int
listen_fail(const struct metrics_address *address, char err[ERR_MAX])
{
	error_set(err, "metrics: %s: %s", address->text, strerror(errno));
	if (server.listen_fd >= 0)
		close(server.listen_fd);
	server.listen_fd = -1;
	return -1;
}

/* Removes a socket file without a listener, which a dead daemon has left. Returns 0, or -1 with errno. */
static int
path_free(const struct metrics_address *address)
{
	struct stat st;
	int fd, rc;

	if (lstat(address->un.sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		errno = ENOTSOCK;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	rc = connect(fd, &address->any, address->size);
	/* EAGAIN: there is a listener, and its backlog is full. */
	if (rc == 0 || errno == EAGAIN)
		errno = EADDRINUSE;
	close(fd);
	return rc != 0 && errno == ECONNREFUSED ? unlink(address->un.sun_path) : -1;
}

int
metrics_listen(const struct metrics_address *address, char err[ERR_MAX])
{
	bool path = address->any.sa_family == AF_UNIX;
	int yes = 1, rc;
	mode_t mask;

	if (address->size == 0)
		return 0;
	if (path && path_free(address) != 0)
		return listen_fail(address, err);
	server.listen_fd = socket(
		address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.listen_fd < 0)
		return listen_fail(address, err);
	/* A daemon that starts again finds connections of the one before in TIME_WAIT. */
	if (!path)
		(void)setsockopt(
			server.listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	mask = umask(0177);
	rc = bind(server.listen_fd, &address->any, address->size);
	umask(mask);
	if (rc == 0 && path)
		bound = *address;
	if (rc != 0 || listen(server.listen_fd, WAITING) != 0)
		return listen_fail(address, err);
	return 0;
}

int
metrics_start(const cpu_set_t *cpus, char err[ERR_MAX])
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	if (server.listen_fd < 0)
		return 0;
	server.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server.stop_fd < 0)
		return error_set(err, "metrics: eventfd: %s", strerror(errno));
	server.make = metrics_make;
	server.clock_ms = ms_now;
	rc = pthread_attr_init(&attr);
	if (rc != 0)
		return error_set(err, "metrics: cannot start a thread: %s", strerror(rc));
	if (cpus != NULL && CPU_COUNT(cpus) != 0)
		rc = pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc == 0)
		rc = pthread_create(&thread, &attr, metrics_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	runs = rc == 0;
	return runs ? 0
		    : error_set(err, "metrics: cannot start a thread: %s", strerror(rc));
}

void
metrics_stop(void)
{
	const uint64_t one = 1;

	if (runs && write(server.stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(thread, NULL);
	http_server_fini(&server);
	if (server.listen_fd >= 0)
		close(server.listen_fd);
	if (server.stop_fd >= 0)
		close(server.stop_fd);
	if (bound.size != 0)
		(void)unlink(bound.un.sun_path);
}
