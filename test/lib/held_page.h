/* SPDX-License-Identifier: BSD-3-Clause */
/* A page that a system call waits for when it reads it, as one of a file of a FUSE server that does not
 * answer: a client can keep a file locked as long as it likes by write(2) from there. */
#ifndef ROCADE_TEST_HELD_PAGE_H
#define ROCADE_TEST_HELD_PAGE_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELD_PAGE 4096

struct held_page {
	int fd;
	void *at;
};

/* Returns false if that is not permitted: it needs CAP_SYS_PTRACE. */
static inline bool
held_page_open(struct held_page *h)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	h->at = MAP_FAILED;
	h->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (h->fd < 0)
		return false;
	h->at = mmap(NULL, HELD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	area.range.start = (uintptr_t)h->at;
	area.range.len = HELD_PAGE;
	return h->at != MAP_FAILED && ioctl(h->fd, UFFDIO_API, &api) == 0 &&
	       ioctl(h->fd, UFFDIO_REGISTER, &area) == 0;
}

/* Nothing waits for it any more. */
static inline void
held_page_close(struct held_page *h)
{
	struct uffdio_zeropage zero = {
		.range = {.start = (uintptr_t)h->at, .len = HELD_PAGE}};

	if (h->fd >= 0) {
		(void)ioctl(h->fd, UFFDIO_ZEROPAGE, &zero);
		close(h->fd);
	}
	if (h->at != MAP_FAILED)
		munmap(h->at, HELD_PAGE);
}

#endif
