/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls the functions that librocade overrides with paths that are of no device: they act as those of libc, and
 * need hardly more stack. Prints a line for each: NAME ok, or what it has found. test/e2e/sysfs.py has
 * the rows. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (256 * 1024)
#define STACK_MORE 1024 /* octets, than without the call */
#define PAINT 0xA5

/* Called in place of the functions without "chk" if _FORTIFY_SOURCE is set. */
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(
	int dirfd, const char *path, char *buf, size_t size, size_t room);

static void
row(const char *name, int good, long got)
{
	printf("%s %s %ld\n", name, good ? "ok" : "wrong", got);
}

/* ---- Stack ---- */

static char text[PATH_MAX];
static struct stat st;
static int root;

static void
on_nothing(void)
{
}

static void
on_readlink(void)
{
	(void)!readlink("/proc/self/exe", text, sizeof(text));
}

static void
on_readlink_short(void)
{
	(void)!readlink("/proc/self/exe", text, 2);
}

static void
on_readlinkat(void)
{
	(void)!readlinkat(AT_FDCWD, "/proc/self/exe", text, sizeof(text));
}

static void
on_open(void)
{
	close(open("/dev/null", O_RDWR));
}

static void
on_openat(void)
{
	close(openat(root, "state", O_RDONLY));
}

static void
on_open_write(void)
{
	close(open("none/none", O_WRONLY));
}

static void
on_stat(void)
{
	(void)stat("/dev/null", &st);
}

static void
on_fstatat(void)
{
	(void)fstatat(AT_FDCWD, "/usr/include/infiniband/verbs.h", &st, 0);
}

static void
on_access(void)
{
	(void)access("/sys/class/net", F_OK);
}

static void
on_chdir(void)
{
	(void)!chdir("/");
}

static void
on_getcwd(void)
{
	(void)getcwd(text, sizeof(text));
}

static void
on_getcwd_short(void)
{
	(void)!getcwd(text, 1);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {{"stack-readlink", on_readlink}, {"stack-readlink-short", on_readlink_short},
	{"stack-readlinkat", on_readlinkat}, {"stack-open", on_open},
	{"stack-openat", on_openat}, {"stack-open-write", on_open_write},
	{"stack-stat", on_stat}, {"stack-fstatat", on_fstatat},
	{"stack-access", on_access}, {"stack-chdir", on_chdir},
	{"stack-getcwd", on_getcwd}, {"stack-getcwd-short", on_getcwd_short}};

static void *
on_stack(void *call)
{
	(*(void (**)(void))call)();
	return NULL;
}

/* Returns how many octets of the stack a thread has written that makes the call. */
static long
stack_used(void (*call)(void))
{
	uint8_t *stack = mmap(
		NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	long unused = 0;

	memset(stack, PAINT, STACK);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	if (pthread_create(&thread, &attr, on_stack, &call) == 0)
		pthread_join(thread, NULL);
	while (unused < STACK && stack[unused] == PAINT)
		unused++;
	munmap(stack, STACK);
	return STACK - unused;
}

static void
stacks(void)
{
	long before;

	root = open("/", O_PATH);
	(void)stack_used(on_nothing);
	before = stack_used(on_nothing);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long used;

		calls[i].call(); /* the dynamic loader looks the functions up */
		used = stack_used(calls[i].call) - before;
		row(calls[i].name, used < STACK_MORE, used);
	}
}

/* ---- Buffers ---- */

static void
buffers(void)
{
	char *volatile wrong = (char *)1;
	ssize_t len = readlink("/proc/self/exe", wrong, 100);

	row("readlink-fault", len == -1 && errno == EFAULT, errno);
	len = readlink("/proc/self/exe", text, 0);
	row("readlink-empty", len == -1 && errno == EINVAL, errno);
	len = readlink("/proc/self/exe", text, 3);
	row("readlink-short", len == 3, (long)len);
}

static void
on_getcwd_chk(void)
{
	(void)__getcwd_chk(text, 100, 10);
}

static void
on_readlink_chk(void)
{
	(void)!__readlink_chk("/proc/self/exe", text, 100, 10);
}

static void
on_readlinkat_chk(void)
{
	(void)!__readlinkat_chk(AT_FDCWD, "/proc/self/exe", text, 100, 10);
}

/* A buffer that has less room than the call says ends the program. */
static void
abort_row(const char *name, void (*call)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		close(STDERR_FILENO);
		call();
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	row(name, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, status);
}

/* ---- glob() ---- */

#if defined(__x86_64__)
__asm__(".symver glob_old, glob@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver glob_old, glob@GLIBC_2.17");
#else
#define glob_old glob
#endif
int glob_old(const char *pattern, int flags, int (*failed)(const char *path, int err),
	glob_t *found);

static unsigned opened;

static void *
directory_open(const char *path)
{
	opened++;
	return opendir(path);
}

static struct dirent *
directory_read(void *dir)
{
	return readdir(dir);
}

static void
directory_close(void *dir)
{
	closedir(dir);
}

static int
lstat_new(const char *path, struct stat *out)
{
	return lstat(path, out);
}

static int
stat_both(const char *path, struct stat *out)
{
	return stat(path, out);
}

/* As GNU make up to 4.2, which was linked with the old function and does not set gl_lstat. */
static void
globs(void)
{
	glob_t found = {.gl_opendir = directory_open,
		.gl_readdir = directory_read,
		.gl_closedir = directory_close,
		.gl_stat = stat_both,
		.gl_lstat = (__typeof__(found.gl_lstat))1};
	int rc = glob_old("/etc/*/../passwd", GLOB_ALTDIRFUNC, NULL, &found);

	row("glob-old", rc == 0 && found.gl_pathc > 0 && opened > 0, rc);
	rc = glob_old("/sys/class/infiniband/*", 0, NULL, &found);
	row("glob-old-device", rc == 0 && found.gl_pathc == 1, rc);
	found.gl_lstat = lstat_new;
	rc = glob("/etc/*/../passwd", GLOB_ALTDIRFUNC, NULL, &found);
	row("glob-new", rc == 0 && found.gl_pathc > 0, rc);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	stacks();
	buffers();
	globs();
	abort_row("abort-getcwd", on_getcwd_chk);
	abort_row("abort-readlink", on_readlink_chk);
	abort_row("abort-readlinkat", on_readlinkat_chk);
	return 0;
}
