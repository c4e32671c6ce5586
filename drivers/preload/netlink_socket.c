/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/random.h"
#include "preload/fd_stat.h"
#include "preload/netlink_socket.h"

/* Whether the number was once that of such a socket. close() is not intercepted: an entry is cleared when its number is
 * found to be another file's, so that each call on that file does not ask again. */
static uint8_t noted[FD_NUMBERS];

/* The process whose descriptors the table is about. A child of vfork() shares the table, but not the descriptors. */
static pid_t owner;

static void
owner_set(void)
{
	__atomic_store_n(&owner, getpid(), __ATOMIC_RELAXED);
}

static __attribute__((constructor)) void
owner_follow(void)
{
	owner_set();
	(void)pthread_atfork(NULL, NULL, owner_set); /* vfork() does not call it */
}

/* The secret number; 0: none yet. The children of fork() have it, too, as they have the sockets. */
static uint64_t secret;

/* Returns 0 if there are no random numbers, with errno. */
static uint64_t
secret_get(void)
{
	uint64_t known = __atomic_load_n(&secret, __ATOMIC_RELAXED);
	struct random_key key;
	int rc;

	if (known != 0)
		return known;
	rc = random_key_draw(&key);
	if (rc != 0) {
		errno = -rc;
		return 0;
	}
	if (key.word[0] == 0)
		key.word[0] = 1;
	/* Unless another thread was faster: then `known` is its number. */
	return __atomic_compare_exchange_n(&secret, &known, key.word[0], false,
		       __ATOMIC_RELAXED, __ATOMIC_RELAXED)
		       ? key.word[0]
		       : known;
}

#define FILTER_LEN 11

/* The instructions that let a datagram through without its last octets, if these are the number. */
static void
answer_filter_make(uint64_t number, struct sock_filter code[FILTER_LEN])
{
	uint8_t octets[sizeof(number)];
	uint32_t half[2];

	memcpy(octets, &number, sizeof(number));
	for (unsigned i = 0; i < 2; i++) /* the filter loads octets in network order */
		half[i] = (uint32_t)octets[4 * i] << 24 | octets[4 * i + 1] << 16 |
			  octets[4 * i + 2] << 8 | octets[4 * i + 3];
	memcpy(code,
		(struct sock_filter[FILTER_LEN]){
			BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
			BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sizeof(number), 0, 8),
			BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, sizeof(number)),
			BPF_STMT(BPF_MISC | BPF_TAX, 0),
			BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, half[0], 0, 4),
			BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, half[1], 0, 2),
			BPF_STMT(BPF_MISC | BPF_TXA, 0),
			BPF_STMT(BPF_RET | BPF_A, 0),
			BPF_STMT(BPF_RET | BPF_K, 0),
		},
		FILTER_LEN * sizeof(code[0]));
}

/* The program cannot change the filter after this. Returns 0 or -errno. */
static int
answer_filter_set(int fd)
{
	struct sock_filter code[FILTER_LEN];
	struct sock_fprog program = {.len = FILTER_LEN, .filter = code};
	uint64_t number = secret_get();
	int one = 1;

	if (number == 0)
		return -errno;
	answer_filter_make(number, code);
	return syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) == 0 &&
			       syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_LOCK_FILTER,
				       &one, sizeof(one)) == 0
		       ? 0
		       : -errno;
}

bool
netlink_socket_is(int fd)
{
	struct sock_filter code[FILTER_LEN], own[FILTER_LEN];
	socklen_t count = FILTER_LEN; /* of instructions */
	int err = errno;
	bool is;

	if (fd < 0 || fd >= FD_NUMBERS || !__atomic_load_n(&noted[fd], __ATOMIC_RELAXED))
		return false;
	is = getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, code, &count) == 0 &&
	     count == FILTER_LEN;
	if (is) {
		answer_filter_make(__atomic_load_n(&secret, __ATOMIC_RELAXED), own);
		is = memcmp(code, own, sizeof(own)) == 0;
	}
	if (!is && getpid() == __atomic_load_n(&owner, __ATOMIC_RELAXED))
		__atomic_store_n(&noted[fd], 0, __ATOMIC_RELAXED);
	errno = err;
	return is;
}

bool
netlink_socket_note(int fd)
{
	if (fd >= FD_NUMBERS)
		return false;
	__atomic_store_n(&noted[fd], 1, __ATOMIC_RELAXED);
	return true;
}

int
netlink_socket_open(int type)
{
	/* libc's socket() is intercepted. */
	int fd = (int)syscall(SYS_socket, AF_NETLINK, type, NETLINK_USERSOCK), rc;

	if (fd < 0)
		return -errno;
	rc = answer_filter_set(fd);
	if (rc == 0 && netlink_socket_note(fd))
		return fd;
	close(fd);
	return rc != 0 ? rc : -EMFILE;
}

int
netlink_socket_port(int fd, uint32_t *port)
{
	struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	socklen_t len = sizeof(own);

	/* After a bind() that has failed getsockname() gives a port that is not the socket's. This one gives it a
	 * port, or fails with EINVAL because it has one. */
	if (syscall(SYS_bind, fd, &own, sizeof(own)) != 0 && errno != EINVAL)
		return -errno;
	if (getsockname(fd, (struct sockaddr *)&own, &len) != 0)
		return -errno;
	*port = own.nl_pid;
	return 0;
}

/* The program has connected it with the kernel, or with another socket: no datagram of its own reaches it. Returns
 * whether this is over. */
static bool
disconnect(int fd)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	return syscall(SYS_connect, fd, &none, sizeof(none)) == 0;
}

int
netlink_socket_give(int fd, uint32_t port, const void *bytes, size_t len)
{
	uint64_t number = __atomic_load_n(&secret, __ATOMIC_RELAXED);
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = port};
	struct iovec parts[] = {
		{(void *)(uintptr_t)bytes, len}, {&number, sizeof(number)}};
	struct msghdr msg = {.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = parts,
		.msg_iovlen = RTE_DIM(parts)};
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	long rc = syscall(SYS_sendmsg, fd, &msg, flags);

	if (rc < 0 && errno == ECONNREFUSED && disconnect(fd))
		rc = syscall(SYS_sendmsg, fd, &msg, flags);
	if (rc >= 0)
		return 0;
	return errno == EAGAIN ? -ENOBUFS : -errno;
}
