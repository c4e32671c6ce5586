/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "cm_ud_fixture.h"

#define SPEED 16
#define SEC 1000000000u

struct ibv_qp *qp_a, *qp_b;

/* Replaces libc's clock_gettime(). */
__attribute__((visibility("default"))) int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ts);
	uint64_t ns;

	if (rc == 0 && clock == CLOCK_MONOTONIC_RAW) {
		ns = ((uint64_t)ts->tv_sec * SEC + (uint64_t)ts->tv_nsec) * SPEED;
		ts->tv_sec = (time_t)(ns / SEC);
		ts->tv_nsec = (long)(ns % SEC);
	}
	return rc;
}

struct ibv_qp *
ud_qp_create(struct verbs_side *s, uint32_t qkey)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = {.max_send_wr = 4,
			.max_send_sge = 1,
			.max_recv_wr = 4,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	assert_non_null(qp);
	if (qkey != 0)
		pair_ud_to_rts(qp, qkey, 0);
	return qp;
}

static void
open_both(bool ipv6)
{
	cm_pair_open(&(struct verbs_pair_conf){.unconnected = true, .ipv6 = ipv6});
	assert_int_equal(rocade_cm_ud_listen(cm_b, CM_PORT, 2, "listener", &listener), 0);
	qp_a = ud_qp_create(&pair.a, QKEY_A);
	qp_b = ud_qp_create(&pair.b, QKEY_B);
}

int
ud_setup(void **state)
{
	open_both(false);
	return 0;
}

int
ud_setup_ipv6(void **state)
{
	open_both(true);
	return 0;
}

int
ud_teardown(void **state)
{
	cm_managers_close();
	assert_int_equal(ibv_destroy_qp(qp_a), 0);
	assert_int_equal(ibv_destroy_qp(qp_b), 0);
	pair_close(&pair);
	return 0;
}

struct rocade_cm_ud_param
ud_param(const char *text)
{
	return (struct rocade_cm_ud_param){.size = sizeof(struct rocade_cm_ud_param),
		.private_data = text,
		.private_len = strlen(text)};
}

uint8_t
gid_index_of(const struct verbs_side *s)
{
	union ibv_gid gid;

	for (uint8_t i = 0;; i++) {
		assert_int_equal(ibv_query_gid(s->context, 1, i, &gid), 0);
		if (memcmp(&gid, &s->gid, sizeof(gid)) == 0)
			return i;
	}
}

struct rocade_cm_id *
ud_resolve(uint16_t port, const char *text)
{
	struct rocade_cm_ud_param p = ud_param(text);
	struct rocade_cm_id *id;

	p.sgid_index = gid_index_of(&pair.a);
	assert_int_equal(rocade_cm_ud_resolve(cm_a, &pair.b.gid, port, &p, "a", &id), 0);
	return id;
}

void
ud_expect_rejected(struct rocade_cm_id *id, int status)
{
	struct rocade_cm_event e = cm_expect_event(cm_a, ROCADE_CM_REJECTED);

	assert_ptr_equal(e.id, id);
	assert_string_equal(e.user, "a");
	assert_int_equal(e.status, status);
	assert_int_equal(e.qpn, 0);
	rocade_cm_release(id);
}

void
ud_reply(struct rocade_cm_id *id)
{
	assert_int_equal(rocade_cm_ud_answer(id, qp_b, NULL), 0);
	rocade_cm_release(id);
}

void
ud_expect_resolved(struct rocade_cm_id *id)
{
	struct rocade_cm_event e = cm_expect_event(cm_a, ROCADE_CM_RESOLVED);

	assert_ptr_equal(e.id, id);
	assert_int_equal(e.qpn, qp_b->qp_num);
	assert_int_equal(e.qkey, QKEY_B);
	rocade_cm_release(id);
}
