/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <string.h>

#include <rocade/status.h>

#include "own_status.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rocade_daemon *asked; /* NULL: it is being destroyed */
static char *socket_path;

void
own_status_start(struct rocade_daemon *daemon)
{
	socket_path = strdup(rocade_daemon_socket(daemon));
	pthread_mutex_lock(&lock);
	if (socket_path != NULL)
		asked = daemon;
	pthread_mutex_unlock(&lock);
}

void
own_status_stop(void)
{
	pthread_mutex_lock(&lock);
	asked = NULL;
	pthread_mutex_unlock(&lock);
}

char *
own_status_text(bool qps)
{
	char *text;
	int fd = -1;

	pthread_mutex_lock(&lock);
	if (asked != NULL)
		(void)rocade_daemon_connect(asked, &fd);
	pthread_mutex_unlock(&lock);
	if (fd < 0 || rocade_status_over(fd, socket_path, qps, &text) != 0)
		return NULL;
	return text;
}
