/* SPDX-License-Identifier: BSD-3-Clause */
/* On-demand memory that another thread unmaps after an engine has touched it, and before its copy.
 * This thread does both. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "engine/mr_fault.h"
#include "mem/on_demand.h"

#define PAGE 4096
#define BYTES (2 * PAGE)
#define PD 3

static struct key_table keys;
static uint8_t *buffer;
static uint32_t key;

static void
buffer_map(int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	buffer = mmap(buffer, BYTES, PROT_READ | PROT_WRITE,
		flags | (buffer != NULL ? MAP_FIXED : 0), fd, 0);
	assert_true(buffer != MAP_FAILED);
}

static uint32_t
key_new(unsigned access)
{
	uint32_t k;

	assert_int_equal(key_alloc(&keys, PD, 0, buffer, BYTES,
				 IBV_ACCESS_LOCAL_WRITE | access, &k),
		0);
	return k;
}

/* Called inside a test: cmocka restores its signal handlers after each setup. */
static void
begin(int fd)
{
	struct random_key seed = {{1, 2}};

	key_table_init(&keys, &seed);
	buffer = NULL;
	buffer_map(fd);
	memset(buffer, 0x11, BYTES);
	key = key_new(IBV_ACCESS_ON_DEMAND);
	mr_fault_get();
	assert_true(mr_fault_installed());
	mr_fault_enter(&keys);
}

static void
end(void)
{
	assert_int_equal(key_free(&keys, key), 0);
	key_table_fini(&keys);
	mr_fault_put();
	assert_false(mr_fault_installed());
	munmap(buffer, BYTES);
}

static uint8_t *
check(unsigned need)
{
	return key_check(&keys, key, PD, PAGE - 8, 16, need);
}

static bool
is_mapped(const uint8_t *page)
{
	unsigned char present;

	return mincore((void *)(uintptr_t)page, PAGE, &present) == 0;
}

TEST(write_to_unmapped_memory_is_lost)
{
	uint8_t *to;

	begin(-1);
	to = check(IBV_ACCESS_LOCAL_WRITE);
	assert_ptr_equal(to, buffer + PAGE - 8);
	assert_int_equal(munmap(buffer + PAGE, PAGE), 0);
	memset(to, 0x5A, 16);
	mr_fault_leave();
	assert_false(is_mapped(buffer + PAGE));
	assert_int_equal(buffer[PAGE - 1], 0x5A);
	/* The region is as before. */
	assert_null(check(0));
	buffer_map(-1);
	assert_non_null(check(IBV_ACCESS_LOCAL_WRITE));
	end();
}

TEST(read_of_unmapped_memory_gives_zeros)
{
	uint8_t copy[16];
	const uint8_t *from;

	begin(-1);
	from = check(0);
	assert_int_equal(munmap(buffer, BYTES), 0);
	memcpy(copy, from, 16);
	mr_fault_leave();
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(copy[i], 0);
	assert_false(is_mapped(buffer) || is_mapped(buffer + PAGE));
	end();
}

TEST(protected_memory_is_not_changed)
{
	uint8_t *to;

	begin(-1);
	to = check(IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(mprotect(buffer, BYTES, PROT_READ), 0);
	memset(to, 0x5A, 16);
	mr_fault_leave();
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(buffer[i], 0x11);
	assert_null(check(IBV_ACCESS_LOCAL_WRITE));
	assert_non_null(check(0));
	end();
}

TEST(truncated_file_stays_truncated)
{
	int file = memfd_create("on_demand", MFD_CLOEXEC);
	uint8_t *to;

	assert_int_equal(ftruncate(file, BYTES), 0);
	begin(file);
	to = check(IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(ftruncate(file, PAGE), 0);
	memset(to, 0x5A, 16);
	mr_fault_leave();
	assert_null(check(IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(ftruncate(file, BYTES), 0);
	assert_int_equal(buffer[PAGE], 0); /* the file's page again */
	assert_non_null(check(IBV_ACCESS_LOCAL_WRITE));
	end();
	close(file);
}

/* An ordinary region of the same memory is refused from then on, and its page replaced. */
TEST(ordinary_region_is_invalidated)
{
	uint32_t ordinary;
	uint8_t *to;

	begin(-1);
	ordinary = key_new(0);
	to = check(IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(munmap(buffer, BYTES), 0);
	memset(to, 0x5A, 16);
	mr_fault_leave();
	assert_true(is_mapped(buffer));
	assert_null(key_check(&keys, ordinary, PD, 0, 8, 0));
	assert_non_null(check(0));
	assert_int_equal(key_free(&keys, ordinary), 0);
	end();
}

/* A fault elsewhere is a fault of the program, even in memory of an on-demand region. */
TEST(only_touched_memory_is_handled)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		begin(-1);
		(void)check(0);
		munmap(buffer, BYTES);
		*(volatile uint8_t *)(buffer + PAGE + 8) = 1; /* behind the last byte */
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
