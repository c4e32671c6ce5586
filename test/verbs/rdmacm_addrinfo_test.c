/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_resolve_addrinfo(3), rdma_query_addrinfo(3) and rdma_write_cm_event(3), with the installed librdmacm,
 * which may lack them. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "await.h"
#include "case.h"
#include "preload/cm_newer.h"
#include "rdmacm_fixture.h"

#define EVENT_ADDRINFO_RESOLVED 16
#define EVENT_USER 18
#define FORKS 200
#define ARG UINT64_C(0x1122334455667788)

static struct rdma_event_channel *channel;

static int
setup(void **state)
{
	ports_open();
	channel = channel_new();
	return 0;
}

static int
teardown(void **state)
{
	rdma_destroy_event_channel(channel);
	ports_close();
	return 0;
}

#define expect_failure(call, err)                                                        \
	do {                                                                             \
		errno = 0;                                                               \
		assert_int_equal(call, -1);                                              \
		assert_int_equal(errno, err);                                            \
	} while (0)

static struct rdma_addrinfo
hints_of(int flags)
{
	return (struct rdma_addrinfo){.ai_flags = flags,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC};
}

/* The result is the address and port that were asked for. */
static void
expect_result(struct rdma_cm_id *id, const char *addr, uint16_t port)
{
	struct sockaddr_storage *want = addr_of(addr, port);
	struct rdma_addrinfo *info;

	assert_int_equal(rdma_query_addrinfo(id, &info), 0);
	assert_int_equal(info->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(info->ai_dst_len, sizeof(struct sockaddr_in));
	assert_memory_equal(info->ai_dst_addr, want, sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(info);
	expect_failure(rdma_query_addrinfo(id, &info), ENOENT);
}

TEST_WITH(an_address_is_resolved_by_an_event, setup, teardown)
{
	struct rdma_addrinfo hints = hints_of(0), with_dns = hints_of(RAI_DNS), *info;
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);

	expect_failure(rdma_query_addrinfo(id, &info), ENOENT);
	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_B, "7471", &hints), 0);
	/* One at a time. */
	expect_failure(rdma_resolve_addrinfo(id, ADDR_A, "7471", &hints), EBUSY);
	assert_ptr_equal(event_take(channel, EVENT_ADDRINFO_RESOLVED), id);
	expect_result(id, ADDR_B, 7471);
	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_A, "1", &with_dns), 0);
	assert_ptr_equal(event_take(channel, EVENT_ADDRINFO_RESOLVED), id);
	expect_result(id, ADDR_A, 1);
	assert_int_equal(rdma_destroy_id(id), 0);
}

TEST_WITH(a_result_that_is_not_asked_for_ends_with_its_id, setup, teardown)
{
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);
	struct rdma_addrinfo hints = hints_of(0);

	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_B, "7471", &hints), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* Its own rdma_resolve_addrinfo() returns with errno -1 when the kernel has refused the command. */
static bool
librdmacm_has_them(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(library);
	return dlvsym(library, "rdma_resolve_addrinfo", "RDMACM_1.4") != NULL;
}

TEST_WITH(wrong_requests_are_refused, setup, teardown)
{
	struct rdma_addrinfo both = hints_of(RAI_SA | RAI_DNS), sa = hints_of(RAI_SA);
	struct rdma_addrinfo numeric = hints_of(RAI_NUMERICHOST), *info;
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);

	expect_failure(rdma_resolve_addrinfo(NULL, ADDR_B, "7471", NULL), EINVAL);
	expect_failure(rdma_query_addrinfo(NULL, &info), EINVAL);
	expect_failure(rdma_query_addrinfo(id, NULL), EINVAL);
	expect_failure(rdma_resolve_addrinfo(id, ADDR_B, "7471", &both), ENOTSUP);
	expect_failure(rdma_resolve_addrinfo(id, ADDR_B, "7471", &sa), ENOTSUP);
	expect_failure(rdma_resolve_addrinfo(id, NULL, "7471", &sa),
		librdmacm_has_them() ? -1 : EOPNOTSUPP);
	assert_int_equal(rdma_resolve_addrinfo(id, "no.address", "7471", &numeric), -1);
	/* None of them keeps the next one out. */
	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_B, "7471", NULL), 0);
	assert_ptr_equal(event_take(channel, EVENT_ADDRINFO_RESOLVED), id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* An ID without a channel of the program: the call waits for its event, which is in the ID. */
TEST_WITH(a_synchronous_id_has_its_event, setup, teardown)
{
	struct rdma_addrinfo hints = hints_of(0);
	struct rdma_cm_id *id = id_new(NULL, RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_B, "7471", &hints), 0);
	assert_non_null(id->event);
	assert_int_equal(id->event->event, EVENT_ADDRINFO_RESOLVED);
	expect_result(id, ADDR_B, 7471);
	/* The next call waits for its own one. */
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)addr_of(ADDR_A, 0),
				 (struct sockaddr *)addr_of(ADDR_B, 7471), 1000),
		0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void
user_event_take(
	struct rdma_event_channel *from, struct rdma_cm_id *id, int status, uint64_t want)
{
	struct rdma_cm_event *event;
	uint64_t arg;

	assert_int_equal(rdma_get_cm_event(from, &event), 0);
	assert_int_equal(event->event, EVENT_USER);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, status);
	memcpy(&arg, &event->param, sizeof(arg));
	assert_true(arg == want);
	assert_int_equal(rdma_ack_cm_event(event), 0);
}

/* As a thread that waits for events of a channel. */
static void
expect_user_event(struct rdma_cm_id *id)
{
	assert_int_equal(rdma_write_cm_event(id, EVENT_USER, 5, ARG), 0);
	user_event_take(channel, id, 5, ARG);
}

/* The program may have written events to the channel of such an ID: it gets them afterwards, in their
 * order. A librdmacm that has the call takes the first event that there is. */
TEST_WITH(a_synchronous_id_keeps_events_of_the_program, setup, teardown)
{
	struct rdma_addrinfo hints = hints_of(0);
	struct rdma_cm_id *id = id_new(NULL, RDMA_PS_TCP);

	if (!librdmacm_has_them()) {
		assert_int_equal(rdma_write_cm_event(id, EVENT_USER, 0, ARG), 0);
		assert_int_equal(rdma_write_cm_event(id, EVENT_USER, -7, ARG + 1), 0);
	}
	assert_int_equal(rdma_resolve_addrinfo(id, ADDR_B, "7471", &hints), 0);
	assert_non_null(id->event);
	assert_int_equal(id->event->event, EVENT_ADDRINFO_RESOLVED);
	expect_result(id, ADDR_B, 7471);
	if (!librdmacm_has_them()) {
		user_event_take(id->channel, id, 0, ARG);
		user_event_take(id->channel, id, -7, ARG + 1);
	}
	assert_int_equal(rdma_destroy_id(id), 0);
}

TEST_WITH(the_program_writes_an_event, setup, teardown)
{
	struct rdma_cm_id *id = id_new(channel, RDMA_PS_TCP);
	struct rdma_cm_id *ud = id_new(channel, RDMA_PS_UDP);

	expect_user_event(id);
	expect_user_event(ud);
	expect_failure(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	expect_failure(rdma_write_cm_event(id, EVENT_USER + 1, 0, 0), EINVAL);
	assert_int_equal(rdma_destroy_id(ud), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* ---- fork() ---- */

static struct rdma_cm_id *asked_id;
static atomic_bool asks, asks_end;

static void *
results_ask(void *arg)
{
	struct rdma_addrinfo *info;

	while (!atomic_load_explicit(&asks_end, memory_order_relaxed)) {
		(void)rdma_query_addrinfo(asked_id, &info);
		atomic_store_explicit(&asks, true, memory_order_relaxed);
	}
	return arg;
}

/* A lock that another thread of the parent has is free in the child. */
TEST_WITH(a_child_asks_while_the_parent_does, setup, teardown)
{
	struct rdma_addrinfo *info;
	pthread_t thread;
	int failed = 0;

	asked_id = id_new(channel, RDMA_PS_TCP);
	atomic_store(&asks, false);
	atomic_store(&asks_end, false);
	assert_int_equal(pthread_create(&thread, NULL, results_ask, NULL), 0);
	assert_true(awaited(atomic_load_explicit(&asks, memory_order_relaxed)));
	for (unsigned i = 0; i < FORKS && failed == 0; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(rdma_query_addrinfo(asked_id, &info) == -1 ? 0 : 1);
		failed = pid > 0 ? await_child(pid) : -1;
	}
	atomic_store_explicit(&asks_end, true, memory_order_relaxed);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(failed, 0);
	assert_int_equal(rdma_destroy_id(asked_id), 0);
}
