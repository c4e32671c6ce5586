/* SPDX-License-Identifier: BSD-3-Clause */
/* The command descriptors of contexts. Each context that ibv_open_device() makes has an inode of
 * its own, which also duplicates of the descriptor have: so ibv_import_device(3) finds it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/context_file.h"

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, context_file) files = LIST_HEAD_INITIALIZER(files);

/* A thread that holds the lock does not exist in the child of a fork(). */
static void
files_fork_prepare(void)
{
	pthread_mutex_lock(&files_lock);
}

static void
files_fork_done(void)
{
	pthread_mutex_unlock(&files_lock);
}

static __attribute__((constructor)) void
files_fork_handle(void)
{
	(void)pthread_atfork(files_fork_prepare, files_fork_done, files_fork_done);
}

/* An empty file, sealed against writes. */
static int
cmd_fd_create(struct stat *st)
{
	int fd = memfd_create("rocade-context", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_WRITE) != 0 ||
		fstat(fd, st) != 0) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

int
context_file_create(struct ibv_device *device, struct context_file **out)
{
	struct context_file *file = calloc(1, sizeof(*file));
	struct stat st;
	int fd;

	if (file == NULL)
		return -ENOMEM;
	fd = cmd_fd_create(&st);
	if (fd < 0) {
		free(file);
		return fd;
	}
	*file = (struct context_file){.device = device,
		.contexts = 1,
		.st_dev = st.st_dev,
		.st_ino = st.st_ino};
	pthread_mutex_lock(&files_lock);
	LIST_INSERT_HEAD(&files, file, link);
	pthread_mutex_unlock(&files_lock);
	*out = file;
	return fd;
}

struct context_file *
context_file_get(int fd)
{
	struct context_file *file = NULL;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return NULL;
	pthread_mutex_lock(&files_lock);
	LIST_FOREACH(file, &files, link)
	{
		if (file->st_dev == st.st_dev && file->st_ino == st.st_ino)
			break;
	}
	if (file != NULL)
		file->contexts++;
	pthread_mutex_unlock(&files_lock);
	return file;
}

void
context_file_put(struct context_file *file)
{
	bool last;

	pthread_mutex_lock(&files_lock);
	last = --file->contexts == 0;
	if (last)
		LIST_REMOVE(file, link);
	pthread_mutex_unlock(&files_lock);
	if (last)
		free(file);
}
