/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on objects that are not Rocade's reach the real libibverbs. There is no hardware
 * to create these objects. The test forges a context whose private table of functions
 * holds one stub in every entry, so that any function of the real library returns the
 * test's value.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

#define PRIVATE_WORDS 1024

static uintptr_t answer;
static unsigned stub_calls;

static uintptr_t
stub(void)
{
	stub_calls++;
	return answer;
}

static struct ibv_device device = {.name = "forged"};
static uintptr_t private[PRIVATE_WORDS];
static struct verbs_context vctx;
static struct ibv_context *context = &vctx.context;

static int
setup(void **state)
{
	for (size_t i = 0; i < PRIVATE_WORDS; i++)
	private[i] = (uintptr_t)stub;
	vctx.sz = sizeof(vctx);
	vctx.priv = (struct verbs_ex_private *)private;
	vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	vctx.context.device = &device;
	pthread_mutex_init(&vctx.context.mutex, NULL);
	answer = 77;
	stub_calls = 0;
	return 0;
}

/* The call reached the stub exactly once. */
#define expect_forwarded(call, value)                                                    \
	do {                                                                             \
		stub_calls = 0;                                                          \
		assert_int_equal(call, value);                                           \
		assert_int_equal(stub_calls, 1);                                         \
	} while (0)

TEST_WITH(status_calls_are_forwarded, setup, NULL)
{
	struct ibv_pd pd = {.context = context};
	struct ibv_srq srq = {.context = context, .pd = &pd};
	struct ibv_qp qp = {.context = context, .pd = &pd};
	struct ibv_cq cq = {.context = context};
	struct ibv_mr mr = {.context = context, .pd = &pd};
	struct ibv_ah ah = {.context = context, .pd = &pd};
	struct ibv_srq_attr srq_attr = {0};
	struct ibv_qp_attr qp_attr = {0};
	struct ibv_qp_init_attr init = {0};
	union ibv_gid gid;

	expect_forwarded(ibv_dealloc_pd(&pd), 77);
	expect_forwarded(ibv_modify_srq(&srq, &srq_attr, 0), 77);
	expect_forwarded(ibv_query_srq(&srq, &srq_attr), 77);
	expect_forwarded(ibv_destroy_srq(&srq), 77);
	expect_forwarded(ibv_modify_qp(&qp, &qp_attr, 0), 77);
	expect_forwarded(ibv_query_qp(&qp, &qp_attr, 0, &init), 77);
	expect_forwarded(ibv_destroy_qp(&qp), 77);
	expect_forwarded(ibv_attach_mcast(&qp, &gid, 0), 77);
	expect_forwarded(ibv_detach_mcast(&qp, &gid, 0), 77);
	expect_forwarded(ibv_resize_cq(&cq, 5), 77);
	expect_forwarded(ibv_destroy_cq(&cq), 77);
	expect_forwarded(ibv_dereg_mr(&mr), 77);
	expect_forwarded(ibv_destroy_ah(&ah), 77);
}

TEST_WITH(pointer_calls_are_forwarded, setup, NULL)
{
	struct ibv_pd pd = {.context = context};
	struct ibv_srq_init_attr srq_attr = {0};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_ah_attr ah = {0};
	uint8_t byte;

	answer = 0;
	expect_forwarded((uintptr_t)ibv_alloc_pd(context), 0);
	expect_forwarded((uintptr_t)ibv_create_srq(&pd, &srq_attr), 0);
	expect_forwarded((uintptr_t)ibv_create_qp(&pd, &init), 0);
	expect_forwarded((uintptr_t)ibv_create_cq(context, 1, NULL, NULL, 0), 0);
	expect_forwarded((uintptr_t)ibv_create_ah(&pd, &ah), 0);
	expect_forwarded((uintptr_t)ibv_reg_mr(&pd, &byte, 1, 0), 0);
	expect_forwarded((uintptr_t)ibv_reg_mr_iova(&pd, &byte, 1, 0x1000, 0), 0);
	expect_forwarded((uintptr_t)ibv_reg_mr_iova2(&pd, &byte, 1, 0x1000, 0), 0);
}

/* These functions of the real library use public members. */
TEST_WITH(calls_on_public_members_work, setup, NULL)
{
	struct ibv_comp_channel channel = {.context = context, .fd = -1, .refcnt = 1};
	struct ibv_cq cq = {.context = context};

	pthread_mutex_init(&cq.mutex, NULL);
	pthread_cond_init(&cq.cond, NULL);
	ibv_ack_cq_events(&cq, 3);
	assert_int_equal(cq.comp_events_completed, 3);
	assert_int_equal(ibv_destroy_comp_channel(&channel), EBUSY); /* a CQ uses it */
	assert_string_equal(ibv_get_device_name(&device), "forged");
}

/* The forwarding also works while Rocade devices are open. */
TEST_WITH(calls_are_forwarded_beside_rocade_devices, setup, NULL)
{
	struct ibv_pd pd = {.context = context};
	struct verbs_pair pair;

	pair_open(&pair, &(struct verbs_pair_conf){0});
	expect_forwarded(ibv_dealloc_pd(&pd), 77);
	assert_int_equal(ibv_dealloc_pd(pair.a.pd), EBUSY);
	pair_close(&pair);
}

/* References to the first ABI resolve to the real library and its compatibility
 * wrappers. */
__asm__(".symver dealloc_pd_1_0, ibv_dealloc_pd@IBVERBS_1.0");
int dealloc_pd_1_0(void *pd);

static const char *
library_of(const void *function)
{
	Dl_info info;

	assert_int_not_equal(dladdr(function, &info), 0);
	return info.dli_fname;
}

TEST(symbol_versions_select_the_library)
{
	assert_non_null(strstr(library_of((void *)dealloc_pd_1_0), "libibverbs.so"));
	assert_non_null(strstr(library_of((void *)ibv_dealloc_pd), "librocade.so"));
	assert_non_null(strstr(library_of((void *)ibv_ack_async_event), "libibverbs.so"));
	assert_non_null(strstr(library_of((void *)ibv_wc_status_str), "libibverbs.so"));
	/* A lookup by name, as a plugin does. */
	assert_ptr_equal(dlvsym(RTLD_DEFAULT, "ibv_dealloc_pd", "IBVERBS_1.1"),
		(void *)ibv_dealloc_pd);
	assert_ptr_equal(dlvsym(RTLD_DEFAULT, "ibv_dealloc_pd", "IBVERBS_1.0"),
		(void *)dealloc_pd_1_0);
}
