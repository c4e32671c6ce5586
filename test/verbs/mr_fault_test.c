/* SPDX-License-Identifier: BSD-3-Clause */
/* The application unmaps or protects memory under its regions. The process survives; the peer and the
 * application get an error with the next request. Other faults are not handled. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define PAGE 4096
#define BYTES (4 * PAGE)
#define ALL_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct verbs_pair pair;
static uint8_t *buffer; /* memory of b */
static struct ibv_mr *mr;
static int file;
static bool asked = true; /* for the handler */

static void
buffer_register(bool mapped_file)
{
	file = -1;
	if (mapped_file) {
		file = memfd_create("guard", MFD_CLOEXEC);
		assert_true(file >= 0);
		assert_int_equal(ftruncate(file, BYTES), 0);
	}
	buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		mapped_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
	assert_true(buffer != MAP_FAILED);
	mr = ibv_reg_mr(pair.b.pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	assert_non_null(mr);
}

static void
buffer_unmap(void)
{
	if (file < 0)
		assert_int_equal(munmap(buffer, BYTES), 0);
	else
		assert_int_equal(ftruncate(file, 0), 0);
}

/* Called inside a test: cmocka restores its signal handlers after each setup. */
static void
begin(bool mapped_file)
{
	struct verbs_pair_conf conf = {
		.access = ALL_REMOTE, .depth = 4, .mr_fault_handler = asked};

	pair_open(&pair, &conf);
	buffer_register(mapped_file);
}

static void
end(void)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(buffer, BYTES);
	if (file >= 0)
		close(file);
	pair_close(&pair);
}

static void
post(struct verbs_side *s, enum ibv_wr_opcode opcode, const struct ibv_mr *local,
	void *at, uint32_t len, uint32_t offset)
{
	struct ibv_sge sge = {(uintptr_t)at, len, local->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)buffer + offset, mr->rkey}};

	assert_int_equal(ibv_post_send(s->qp[0], &wr, &bad), 0);
}

static enum ibv_wc_status
done(struct verbs_side *s)
{
	struct ibv_wc wc;

	pair_poll_cq(&pair, s->send_cq, &wc, 1);
	return wc.status;
}

static void
remote_run(enum ibv_wr_opcode opcode, bool mapped_file)
{
	begin(mapped_file);
	memset(pair.a.mem, 0x5A, 64);
	post(&pair.a, opcode, pair.a.mr, pair.a.mem, 64, PAGE);
	assert_int_equal(done(&pair.a), IBV_WC_SUCCESS);
	buffer_unmap();
	/* Across a page boundary. */
	post(&pair.a, opcode, pair.a.mr, pair.a.mem, 64, 2 * PAGE - 32);
	assert_int_equal(done(&pair.a), IBV_WC_SUCCESS);
	post(&pair.a, opcode, pair.a.mr, pair.a.mem, 64, 3 * PAGE);
	assert_int_equal(done(&pair.a), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
	end();
}

TEST(remote_write_to_unmapped_memory)
{
	remote_run(IBV_WR_RDMA_WRITE, false);
}

TEST(remote_read_of_unmapped_memory)
{
	remote_run(IBV_WR_RDMA_READ, false);
}

TEST(truncated_file_mapping)
{
	remote_run(IBV_WR_RDMA_WRITE, true);
	remote_run(IBV_WR_RDMA_READ, true);
}

/* Returns the rights of the page as in /proc/self/maps. */
static int
page_rights(const uint8_t *page)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char rights[5], line[512];
	int found = -1;

	assert_non_null(maps);
	while (found < 0 && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 &&
			from <= (uintptr_t)page && (uintptr_t)page < to)
			found = (rights[0] == 'r' ? PROT_READ : 0) |
				(rights[1] == 'w' ? PROT_WRITE : 0);
	}
	fclose(maps);
	return found;
}

/* The application's pages keep their content and their rights. */
static void
protected_run(enum ibv_wr_opcode opcode, int rights, bool mapped_file)
{
	begin(mapped_file);
	memset(buffer, 0x11, BYTES);
	memset(pair.a.mem, 0x5A, 64);
	assert_int_equal(mprotect(buffer, BYTES, rights), 0);
	/* Across a page boundary. */
	post(&pair.a, opcode, pair.a.mr, pair.a.mem, 64, 2 * PAGE - 32);
	assert_int_equal(done(&pair.a), IBV_WC_SUCCESS);
	for (unsigned i = 0; i < BYTES; i += PAGE)
		assert_int_equal(page_rights(buffer + i), rights);
	post(&pair.a, opcode, pair.a.mr, pair.a.mem, 64, 3 * PAGE);
	assert_int_equal(done(&pair.a), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(pair_event(&pair, &pair.b).event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(mprotect(buffer, BYTES, PROT_READ), 0);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(buffer[i], 0x11);
	if (opcode == IBV_WR_RDMA_READ) /* nothing of a page that is not readable */
		assert_int_equal(pair.a.mem[0], 0);
	end();
}

TEST(access_to_protected_memory)
{
	protected_run(IBV_WR_RDMA_WRITE, PROT_READ, false);
	protected_run(IBV_WR_RDMA_WRITE, PROT_NONE, false);
	protected_run(IBV_WR_RDMA_READ, PROT_NONE, false);
	protected_run(IBV_WR_RDMA_WRITE, PROT_READ, true);
	protected_run(IBV_WR_RDMA_READ, PROT_NONE, true);
}

TEST(local_send_from_unmapped_memory)
{
	struct ibv_wc wc;

	begin(false);
	assert_int_equal(pair_post_recv(&pair.a, 0, 1, 0, 64), 0);
	buffer_unmap();
	memset(pair.a.mem, 0x5A, 64);
	post(&pair.b, IBV_WR_SEND, mr, buffer, 64, 0);
	assert_int_equal(done(&pair.b), IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.a.recv_cq, &wc, 1);
	assert_int_equal(pair.a.mem[0], 0); /* the old content is lost */
	post(&pair.b, IBV_WR_SEND, mr, buffer, 64, 0);
	assert_int_equal(done(&pair.b), IBV_WC_LOC_PROT_ERR);
	end();
}

/* A region registered at the same address later is a new one; the old key stays
 * invalid. */
TEST(same_address_can_be_registered_again)
{
	struct ibv_mr *old;

	begin(false);
	buffer_unmap();
	post(&pair.a, IBV_WR_RDMA_WRITE, pair.a.mr, pair.a.mem, 64, 0);
	assert_int_equal(done(&pair.a), IBV_WC_SUCCESS);
	old = mr;
	errno = 0;
	assert_int_equal(ibv_rereg_mr(old, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	munmap(buffer, BYTES);
	buffer = mmap(buffer, BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(buffer != MAP_FAILED);
	mr = ibv_reg_mr(pair.b.pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE | ALL_REMOTE);
	memset(pair.a.mem, 0x5A, 64);
	post(&pair.a, IBV_WR_RDMA_WRITE, pair.a.mr, pair.a.mem, 64, 0);
	assert_int_equal(done(&pair.a), IBV_WC_SUCCESS);
	assert_int_equal(buffer[63], 0x5A);
	assert_int_equal(ibv_dereg_mr(old), 0);
	end();
}

/* ---- Faults that are not Rocade's ---- */

static sigjmp_buf back;

static void
jump(int sig)
{
	siglongjmp(back, sig);
}

/* A fault of the application reaches the application's handler. Closing the last device
 * restores that handler. */
TEST(application_fault_reaches_its_handler)
{
	struct sigaction own = {.sa_handler = jump}, was, now;

	sigaction(SIGSEGV, &own, &was);
	begin(false);
	sigaction(SIGSEGV, NULL, &now);
	assert_true(now.sa_handler != jump);
	buffer_unmap();
	if (sigsetjmp(back, 1) == 0) {
		/* a registered address, but the fault is not in an engine */
		*(volatile uint8_t *)buffer = 1;
		fail();
	}
	end();
	sigaction(SIGSEGV, NULL, &now);
	assert_true(now.sa_handler == jump);
	sigaction(SIGSEGV, &was, NULL);
}

/* Without mr_fault_handler the application's signals are left alone. */
TEST(handler_is_installed_only_if_asked_for)
{
	static const int signals[] = {SIGSEGV, SIGBUS};
	struct sigaction own = {.sa_handler = jump}, was[2], now;

	for (unsigned i = 0; i < 2; i++)
		sigaction(signals[i], &own, &was[i]);
	asked = false;
	begin(false);
	asked = true;
	for (unsigned i = 0; i < 2; i++) {
		sigaction(signals[i], NULL, &now);
		assert_true(now.sa_handler == jump);
	}
	end();
	for (unsigned i = 0; i < 2; i++) {
		sigaction(signals[i], NULL, &now);
		assert_true(now.sa_handler == jump);
		sigaction(signals[i], &was[i], NULL);
	}
}

/* Runs the fault in a child. Returns the signal that killed it, or its negative exit
 * status. */
static int
killed_by(const char *off, bool read_only)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		setenv("ROCADE_OFF", off, 1);
		begin(false);
		if (read_only)
			mprotect(buffer, BYTES, PROT_READ);
		else
			buffer_unmap();
		post(&pair.a, IBV_WR_RDMA_WRITE, pair.a.mr, pair.a.mem, 64, 0);
		_exit(done(&pair.a) == IBV_WC_SUCCESS ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

TEST(without_handler_the_fault_kills)
{
	assert_int_equal(killed_by("", false), 0);
	assert_int_equal(killed_by("mr-fault-handler", false), SIGSEGV);
	assert_int_equal(killed_by("", true), 0);
	assert_int_equal(killed_by("mr-fault-handler", true), SIGSEGV);
	asked = false;
	assert_int_equal(killed_by("", false), SIGSEGV);
	asked = true;
}

static struct sigaction below_segv, below_bus;
static unsigned depth;

/* As a crash reporter: calls the handler that was there before. */
static void
chained_handler(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *below = sig == SIGSEGV ? &below_segv : &below_bus;

	if (++depth > 1)
		_exit(2);
	below->sa_sigaction(sig, info, context);
	depth--;
}

/* The handler of a library calls ours. The device is closed and opened again: faults of regions are
 * still handled, and others end the process. */
TEST(handler_below_another_stays_there)
{
	struct sigaction action = {
		.sa_sigaction = chained_handler, .sa_flags = SA_SIGINFO};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		begin(false);
		sigaction(SIGSEGV, &action, &below_segv);
		sigaction(SIGBUS, &action, &below_bus);
		end();
		begin(false);
		buffer_unmap();
		post(&pair.a, IBV_WR_RDMA_WRITE, pair.a.mr, pair.a.mem, 64, 0);
		if (done(&pair.a) != IBV_WC_SUCCESS)
			_exit(1);
		*(volatile uint8_t *)(uintptr_t)PAGE = 1; /* never mapped */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* kill(2) still ends the process. A signal that was ignored stays ignored. */
TEST(sent_signal_has_its_effect)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_IGN);
		begin(false);
		kill(getpid(), SIGBUS);
		kill(getpid(), SIGSEGV);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}
