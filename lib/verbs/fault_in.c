/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults memory in before an engine accesses it: registration of an address that is not
 * mapped fails with EFAULT, instead of a signal in the engine. */
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs/objects.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Faults in one page on kernels without MADV_POPULATE_*: the kernel accesses the page,
 * and returns EFAULT where this process would get a signal. For write it ors 0 into the
 * page's first word, atomically because the application may be writing there.
 */
static int
page_fault_in(uintptr_t page, bool write)
{
	static const struct timespec now;
	uint32_t idle = 0;
	long rc;

	if (write)
		rc = syscall(SYS_futex, &idle, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
			page, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
	else
		/* Reads the word. Returns at once, whether or not it is 0. */
		rc = syscall(SYS_futex, page, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &now,
			NULL, 0);
	return rc < 0 && errno == EFAULT ? EFAULT : 0;
}

int
pages_fault_in(void *addr, size_t len, bool write)
{
	uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page_size - 1);
	uintptr_t end = (uintptr_t)addr + len;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int rc;

	if (len == 0)
		return 0;
	end = (end + page_size - 1) & ~(page_size - 1);
	do
		rc = madvise((void *)start, end - start, advice);
	while (rc != 0 && (errno == EAGAIN || errno == EINTR));
	if (rc == 0)
		return 0;
	/* EINVAL: a kernel before 5.14, a device's memory, or write to a read-only
	 * mapping. */
	if (errno != EINVAL)
		return EFAULT;
	for (uintptr_t page = start; page != end; page += page_size) {
		int err = page_fault_in(page, write);

		if (err != 0)
			return err;
	}
	return 0;
}
