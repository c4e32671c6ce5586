/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND with invalidate of rocade-testpmd: windows that are bound, invalidated, and bound again. */
#include "testpmd_ops_fixture.h"

TEST_WITH(a_window_is_bound_again_for_each_send_with_invalidate, NULL, teardown)
{
	run_begin("send-inv");
	assert_int_equal(tells, 2); /* half of the windows at a time */
	for (unsigned i = 0; i < 10 * MWS_OF_QP; i++) {
		assert_true(tx_op_room(&tx, &tx_conn) != 0);
		message();
		messages_acknowledged();
		assert_string_equal(rx.reason, "");
	}
	assert_int_equal(rx_conn.received, 10 * MWS_OF_QP);
	assert_int_equal(rx.mws.bound[0].bound, 11 * MWS_OF_QP);
	for (unsigned i = 0; i < MWS_OF_QP; i++)
		assert_int_equal(valid[i],
			rx.mws.bound[0].mw[(i + MWS_OF_QP - 1) % MWS_OF_QP]->rkey);
}

TEST_WITH(a_sender_without_a_key_waits_and_asks, NULL, teardown)
{
	struct mws_told told;

	run_begin("send-inv");
	tells_lost = true;
	while (tx_op_room(&tx, &tx_conn) != 0)
		message();
	assert_int_equal(tx_conn.posted, MWS_OF_QP);
	mws_tell(&rx, &rx_conn, &told); /* the answer */
	assert_int_equal(told.from, MWS_OF_QP);
	assert_true(mws_learn(&tx, &tx_conn, &told));
	assert_int_equal(tx_op_room(&tx, &tx_conn), MWS_OF_QP);
	/* The same again, and an old one, change nothing. */
	assert_true(mws_learn(&tx, &tx_conn, &told));
	told.from = 0;
	told.n = MWS_OF_QP;
	assert_true(mws_learn(&tx, &tx_conn, &told));
	assert_int_equal(tx_op_room(&tx, &tx_conn), MWS_OF_QP);
	for (unsigned i = 0; i < MWS_OF_QP; i++)
		message();
	assert_string_equal(rx.reason, "");
}

TEST_WITH(keys_that_a_receiver_cannot_have_are_not_taken, NULL, teardown)
{
	struct mws_told told = {.from = 0, .n = MWS_OF_QP + 1};

	run_begin("send-inv");
	assert_false(mws_learn(&tx, &tx_conn, &told));
	told = (struct mws_told){.from = MWS_OF_QP + 1, .n = 1}; /* a gap */
	assert_false(mws_learn(&tx, &tx_conn, &told));
	told = (struct mws_told){
		.from = 1, .n = MWS_OF_QP}; /* a window that is not used yet */
	assert_false(mws_learn(&tx, &tx_conn, &told));
	assert_int_equal(tx_op_room(&tx, &tx_conn), MWS_OF_QP);
}

TEST_WITH(another_key_than_the_one_whose_turn_it_was_is_named, NULL, teardown)
{
	run_begin("send-inv");
	message();
	wrong_key = 1;
	message();
	assert_non_null(
		strstr(rx.reason, "message 1 (send-inv) of QP 0x100 has invalidated"));
}

TEST_WITH(a_send_that_invalidates_nothing_is_noticed, NULL, teardown)
{
	run_begin("send-inv");
	receive(IBV_WC_RECV, 0, 0, SIZE);
	assert_non_null(strstr(rx.reason, "is another operation than send-inv"));
}

/* The SEND carries the key, and its window is still bound. */
TEST_WITH(a_window_that_was_not_invalidated_cannot_be_bound, NULL, teardown)
{
	run_begin("send-inv");
	valid[2] = 0x2ff;
	verify_fill(received, SIZE, verify_seed(QPN, 0));
	receive(IBV_WC_RECV, IBV_WC_WITH_INV, rx.mws.bound[0].rkeys[0], SIZE);
	assert_string_equal(rx.reason, "");
	binds_run();
	assert_non_null(
		strstr(rx.reason, "bind 32 of a memory window of QP 0x100 failed"));
}

TEST_WITH(a_restarted_qp_has_no_windows, NULL, teardown)
{
	run_begin("send-inv");
	for (unsigned i = 0; i < 5; i++)
		message();
	mws_restart(&rx, &rx_conn);
	mws_restart(&tx, &tx_conn);
	memset(valid, 0, sizeof(valid)); /* RESET has unbound them */
	assert_int_equal(tx_op_room(&tx, &tx_conn), 0);
	mws_bind(&rx);
	binds_run();
	assert_int_equal(tx_op_room(&tx, &tx_conn), MWS_OF_QP);
	assert_string_equal(rx.reason, "");
}

/* The next run tries again: it takes no window that there is not. */
TEST_WITH(windows_that_the_device_does_not_have_are_none, NULL, teardown)
{
	run_begin("send-inv");
	mws_fini(&rx.mws, 1);
	windows_left = MWS_OF_QP - 1;
	assert_int_equal(mws_init(&rx), ENOMEM);
	assert_null(rx.mws.bound);
	assert_int_equal(windows, 0);
	windows_left = UINT_MAX;
	assert_int_equal(mws_init(&rx), 0);
	for (unsigned i = 0; i < MWS_OF_QP; i++)
		assert_non_null(rx.mws.bound[0].mw[i]);
}

TEST_WITH(more_qps_than_the_device_has_windows_for_are_refused, NULL, teardown)
{
	char err[ERR_MAX];

	run_begin("send-inv");
	conf.qps = 32767;
	rx.verbs.attr.max_mw = (1 << 20) - 1;
	assert_int_equal(mws_check(&rx, err), 0);
	conf.qps = 32768;
	assert_int_equal(mws_check(&rx, err), -1);
	assert_string_equal(err,
		"invalid value '32768' for --qps: expected at most 32767 with --op send-inv, "
		"as each QP has 32 memory windows, and the device 1048575");
	tx.verbs.attr.max_mw = 0; /* a sender has none */
	assert_int_equal(mws_check(&tx, err), 0);
}
