/* SPDX-License-Identifier: BSD-3-Clause */
#include "syscall_filter.h"

#ifdef HAVE_SECCOMP
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

const bool filter_built = true;

enum who { EVERY, PORT };

struct filter_row {
	enum who who;
	const char *call;
	unsigned argument;
	uint64_t mask; /* 0: whatever the arguments are */
	uint64_t value;
};

static int
row_add(scmp_filter_ctx ctx, const struct filter_row *row)
{
	int call = seccomp_syscall_resolve_name(row->call);
	struct scmp_arg_cmp cmp = {.arg = row->argument,
		.op = SCMP_CMP_MASKED_EQ,
		.datum_a = row->mask,
		.datum_b = row->value};

	/* Negative: this architecture, or this libseccomp, does not have it. */
	if (call < 0)
		return 0;
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, call, row->mask != 0, &cmp);
}

static int
rows_add(scmp_filter_ctx ctx, bool port)
{
#define CALL(w, c, r) {.who = w, .call = #c},
#define CALL_IF(w, c, a, m, v, r)                                                        \
	{.who = w, .call = #c, .argument = a, .mask = m, .value = v},
	const struct filter_row rows[] = {
#include "syscall_filter.def"
	};
#undef CALL
#undef CALL_IF
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].who == EVERY || port)
			rc = row_add(ctx, &rows[i]);
	}
	/* The flags of clone3() lie in memory, where a filter cannot check them. glibc then
	 * uses clone(). */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return rc;
}

int
filter_install(bool port, enum filter_mode mode, char err[ERR_MAX])
{
	uint32_t action = mode == FILTER_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_LOG;
	scmp_filter_ctx ctx;
	int rc;

	if (mode == FILTER_OFF)
		return 0;
	/* EAL cancels a thread at its end. pthread_cancel() then loads this library, whose code
	 * the filter would not let it map; it stays loaded. Not found: nothing needs it. */
	if (port)
		(void)dlopen("libgcc_s.so.1", RTLD_NOW);
	ctx = seccomp_init(action);
	if (ctx == NULL)
		return error_set(err, "seccomp: cannot create a filter");
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	/* Kernels before 5.16 disable speculative store bypass (SSB) in a process with a
	 * filter, which slows it down. That protects from untrusted code in the process,
	 * and the daemon runs none: this attribute leaves SSB enabled. */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = rows_add(ctx, port);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc != 0)
		return error_set(err,
			"seccomp: the kernel refuses the filter: %s (see --seccomp)",
			strerror(-rc));
	return 0;
}

#else

const bool filter_built = false;

int
filter_install(bool port, enum filter_mode mode, char err[ERR_MAX])
{
	(void)port;
	(void)mode;
	(void)err;
	return 0;
}

#endif
