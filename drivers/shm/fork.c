/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the child has a copy of everything but the progress thread. It would share the
 * rings with the parent, which continues to use them, and could read and forge the
 * parent's packets: they are unmapped in the child. The child's copies of the ports are
 * dead (shm->dead): they send no request, no packet and no wake-up. Destroying the
 * child's objects tells the daemon nothing. It can wait for ever for a lock that another
 * thread of the parent held at the fork, for example to poll a CQ: the lock stays taken
 * in the child. A device that is opened in the child gets a new port.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "shm/shm.h"
#include "verbs/device_source.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shm *ports;
static uint32_t forks; /* from the process that has loaded the library to this one */

/* Lock order everywhere: devices, device list, ports, device, pairs, session, engine locks, keys. Those of CQs
 * and SQs come before all of these, see queue/app_locks.h. */
static void
fork_prepare(void)
{
	devices_fork_prepare();
	pthread_mutex_lock(&lock);
	for (struct shm *s = ports; s != NULL; s = s->next) {
		pthread_mutex_lock(&s->dev->lock);
		pthread_mutex_lock(&s->pairs.serve_lock);
		pthread_mutex_lock(&s->session.lock);
		dev_engines_lock(s->dev);
		rte_spinlock_lock(&s->dev->keys.lock);
	}
}

/* Memory of the child's own takes the place: its engine still writes packets that it
 * will not send. MADV_DONTFORK instead would leave a hole, where a fork handler that runs
 * before this one could map its own. */
static void
memory_unshare(void *mem, size_t size)
{
	void *own = mmap(mem, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (own == MAP_FAILED)
		munmap(mem, size);
}

static void
port_disable(struct shm *s)
{
	s->dead = true;
	memory_unshare(s->region.client, region_client_size(&s->region.geom));
	memory_unshare(s->region.daemon, region_daemon_size(&s->region.geom));
	pairs_unshare(&s->pairs, memory_unshare);
	close(s->session.fd);
	s->session.fd = -1;
	close(s->daemon_wake_fd);
	s->daemon_wake_fd = -1;
	close(s->progress_thread.wake_fd);
	s->progress_thread.wake_fd = -1;
	close(s->progress_thread.self_wake_fd);
	s->progress_thread.self_wake_fd = -1;
	s->progress_thread.running = false;
	engine_set_progress_thread(s->dev->engines[0], NULL);
	engine_unlock_forked(s->dev->engines[0]);
}

static void
fork_done(bool child)
{
	for (struct shm *s = ports; s != NULL; s = s->next) {
		rte_spinlock_unlock(&s->dev->keys.lock);
		if (child)
			port_disable(s);
		else
			dev_engines_unlock(s->dev);
		pthread_mutex_unlock(&s->session.lock);
		pthread_mutex_unlock(&s->pairs.serve_lock);
		pthread_mutex_unlock(&s->dev->lock);
	}
	if (child)
		ports = NULL;
	pthread_mutex_unlock(&lock);
	devices_fork_done(child);
}

static void
fork_parent(void)
{
	fork_done(false);
}

static void
fork_child(void)
{
	int state = no_cancel_begin();

	forks++;
	fork_done(true);
	no_cancel_end(state);
}

/*
 * Registers the handlers when the library is loaded, because prepare handlers run in reverse order. A
 * handler of the program may wait for a lock whose holder is in a verb. That verb needs our locks, so
 * fork() must not hold them yet. The program may also fork while it opens its first device. An allocator
 * in place of libc's is called with our locks held, so its handler must prepare after ours: it registers
 * it at its first allocation.
 */
static __attribute__((constructor)) void
fork_handle(void)
{
	void *volatile first = malloc(1);

	free(first);
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

uint32_t
process_forks(void)
{
	return forks;
}

void
shm_list_add(struct shm *shm)
{
	pthread_mutex_lock(&lock);
	shm->next = ports;
	ports = shm;
	pthread_mutex_unlock(&lock);
}

void
shm_list_each(void (*fn)(struct shm *shm, void *arg), void *arg)
{
	pthread_mutex_lock(&lock);
	for (struct shm *s = ports; s != NULL; s = s->next)
		fn(s, arg);
	pthread_mutex_unlock(&lock);
}

void
shm_list_remove(struct shm *shm)
{
	pthread_mutex_lock(&lock);
	for (struct shm **link = &ports; *link != NULL; link = &(*link)->next) {
		if (*link == shm) {
			*link = shm->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}
