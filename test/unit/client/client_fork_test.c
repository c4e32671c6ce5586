/* SPDX-License-Identifier: BSD-3-Clause */
/* fork() of a client whose other threads are in verbs: neither the parent nor the child waits for a
 * lock in vain. */
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client_fixture.h"

#include "../../e2e/flow_end.h"

#define FORKS 200

/* A handler of the program, which takes a lock of the program. */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static bool in_use, locked;
static sem_t preparing;

static void
program_prepare(void)
{
	if (!in_use)
		return;
	sem_post(&preparing);
	locked = awaited(pthread_mutex_trylock(&program_lock) == 0);
}

static void
program_done(void)
{
	if (in_use && locked)
		pthread_mutex_unlock(&program_lock);
}

/* Forks a child that does this, and returns whether it has ended well. */
static bool
child_ends(void (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		fn(arg);
		_exit(0);
	}
	return pid > 0 && await_child(pid) == 0;
}

static void
nothing_do(void *arg)
{
	(void)arg;
}

/* ---- The first device is being opened ---- */

struct opening {
	struct ibv_device **list;
	int listener, connection;
	pid_t forker;
	sem_t forks, forked;
};

static int
daemon_pretend(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void *
device_open_in_vain(void *arg)
{
	return ibv_open_device(((struct opening *)arg)->list[0]);
}

/* The daemon ends when fork() has returned. Or fork() waits for the thread that opens the device, and
 * that for the daemon, which then ends too. This thread allocates nothing: the child does. */
static void *
daemon_pretended_end(void *arg)
{
	struct opening *o = arg;

	while (sem_wait(&o->forks) != 0)
		;
	(void)awaited(sem_trywait(&o->forked) == 0 || thread_sleeps(o->forker));
	shutdown(o->connection, SHUT_RDWR);
	return NULL;
}

static void
devices_list(void *arg)
{
	(void)arg;
	setenv("ROCADE_SOCKET", "/nonexistent", 1);
	ibv_free_device_list(ibv_get_device_list(NULL));
}

/* The first case: the library has opened no device yet. */
TEST(child_of_the_first_opening_lists_devices)
{
	struct client_fixture f;
	pthread_t opener, ender;
	struct opening o;
	char path[80];
	void *context;
	bool ends;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	o.list = ibv_get_device_list(NULL);
	assert_string_equal(ibv_get_device_name(o.list[0]), "rocade0");
	snprintf(path, sizeof(path), "%s/pretended", f.dir);
	o.listener = daemon_pretend(path);
	o.forker = gettid();
	assert_int_equal(sem_init(&o.forks, 0, 0), 0);
	assert_int_equal(sem_init(&o.forked, 0, 0), 0);
	setenv("ROCADE_SOCKET", path, 1);
	thread_start(&opener, device_open_in_vain, &o);
	/* From here on the thread holds the lock of the device. */
	o.connection = accept4(o.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(o.connection >= 0);
	thread_start(&ender, daemon_pretended_end, &o);
	assert_true(threads_asleep_await());
	sem_post(&o.forks);
	ends = child_ends(devices_list, NULL);
	sem_post(&o.forked);
	assert_int_equal(pthread_join(opener, &context), 0);
	assert_null(context);
	assert_int_equal(pthread_join(ender, NULL), 0);
	assert_true(ends);
	setenv("ROCADE_SOCKET", f.path, 1);
	ibv_free_device_list(o.list);
	sem_destroy(&o.forks);
	sem_destroy(&o.forked);
	close(o.connection);
	close(o.listener);
	unlink(path);
	fixture_close(&f);
}

/* ---- A program with handlers ---- */

static void *
verb_with_the_lock(void *arg)
{
	struct end *e = arg;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int rc;

	pthread_mutex_lock(&program_lock);
	sem_post(&preparing); /* tells that the lock is taken */
	while (!__atomic_load_n(&in_use, __ATOMIC_ACQUIRE))
		sched_yield();
	sem_wait(&preparing);
	rc = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	pthread_mutex_unlock(&program_lock);
	return (void *)(intptr_t)rc;
}

TEST(handlers_of_the_program_prepare_first)
{
	struct client_fixture f;
	pthread_t thread;
	struct end end;
	void *rc;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&end);
	assert_int_equal(sem_init(&preparing, 0, 0), 0);
	thread_start(&thread, verb_with_the_lock, &end);
	assert_int_equal(sem_wait(&preparing), 0);
	__atomic_store_n(&in_use, true, __ATOMIC_RELEASE);
	assert_true(child_ends(nothing_do, NULL));
	in_use = false;
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_null(rc);
	assert_true(locked);
	sem_destroy(&preparing);
	assert_int_equal(end_close(&end), 0);
	fixture_close(&f);
}

/* ---- A thread lists devices ---- */

struct lister {
	struct ibv_device *device;
	bool stop;
};

static void
guid_get(void *arg)
{
	(void)ibv_get_device_guid(((struct lister *)arg)->device);
}

static void *
guids_get(void *arg)
{
	while (!__atomic_load_n(&((struct lister *)arg)->stop, __ATOMIC_RELAXED))
		guid_get(arg);
	return NULL;
}

/* In some of the forks the thread holds the lock of the list. */
TEST(children_use_the_list)
{
	struct client_fixture f;
	struct ibv_device **list;
	struct lister l = {.stop = false};
	unsigned ended = 0;
	pthread_t thread;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	list = ibv_get_device_list(NULL);
	l.device = list[0];
	assert_string_equal(ibv_get_device_name(l.device), "rocade0");
	thread_start(&thread, guids_get, &l);
	while (ended < FORKS && child_ends(guid_get, &l))
		ended++;
	__atomic_store_n(&l.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ended, FORKS);
	ibv_free_device_list(list);
	fixture_close(&f);
}

static int
watch_forks(void **state)
{
	return pthread_atfork(program_prepare, program_done, program_done);
}

TEST_GROUP(watch_forks, NULL)
