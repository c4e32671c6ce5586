/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs of a client come and go as the daemon says: events in order, and those that the client
 * refuses; what other threads see of a pair. */
#include "pair_question.h"

#define SLOTS 8 /* of the fixture's rings */

static struct pair_fixture f;
static uint8_t taken[64]; /* numbers of the packets that passes took */
static unsigned taken_count, passes;

/* In place of the engine's: takes at most two packets. */
unsigned __wrap_engine_request_pass(struct engine *e);

unsigned
__wrap_engine_request_pass(struct engine *e)
{
	struct pair_side *s = e == f.a.dev->engines[0] ? &f.a : &f.b;
	struct pkt pkts[2];
	unsigned got = side_take(s, pkts, RTE_DIM(pkts));

	for (unsigned i = 0; i < got; i++)
		taken[taken_count++ % RTE_DIM(taken)] = pkts[i].data[61];
	s->port.ops->rx_release(s->shm, pkts, got);
	passes++;
	return got;
}

static int
setup(void **state)
{
	clients_open(&f);
	taken_count = passes = 0;
	return 0;
}

static int
teardown(void **state)
{
	fixture_close(&f);
	assert_int_equal(parts_mapped(), 0);
	return 0;
}

TEST_WITH(pair_begins_and_ends, setup, teardown)
{
	struct stat st;
	unsigned fds;

	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	for (unsigned round = 0; round < 3; round++) {
		fds = fds_count();
		side_own(&f.a, f.b.id);
		/* One is of the test, the other is the connection. */
		assert_int_equal(fds_count(), fds + 2);
		assert_int_equal(parts_mapped(), 1);
		assert_int_equal(fstat(f.a.part, &st), 0);
		assert_int_equal(
			st.st_blocks * 512, pair_part_size(&f.a.shm->pairs.geom));
		/* It cannot be used yet. */
		assert_null(pairs_route(f.a.shm, QP_1));
		assert_false(pairs_have_packets(f.a.shm));
		side_expect(&f.a, 0, 0);
		side_own(&f.b, f.a.id);
		assert_int_equal(
			side_event(&f.a, SW_PAIR_PEER, f.b.id, f.b.part), SW_PAIR_PEER);
		assert_int_equal(
			side_event(&f.b, SW_PAIR_PEER, f.a.id, f.a.part), SW_PAIR_PEER);
		assert_int_equal(parts_mapped(), 4);
		assert_int_equal(fds_count(), fds + 4);
		assert_ptr_equal(pairs_route(f.a.shm, QP_1), side_pair(&f.a));
		assert_int_equal(side_event(&f.a, SW_PAIR_END, f.b.id, -1), SW_PAIR_END);
		assert_int_equal(parts_mapped(), 2);
		assert_int_equal(f.a.shm->pairs.count, 0);
		assert_null(pairs_route(f.a.shm, QP_1));
		assert_int_equal(side_event(&f.b, SW_PAIR_END, f.a.id, -1), SW_PAIR_END);
		/* The end of a pair that is not there. */
		assert_int_equal(side_event(&f.b, SW_PAIR_END, f.a.id, -1), SW_PAIR_END);
		assert_int_equal(parts_mapped(), 0);
		close(f.a.part);
		close(f.b.part);
		f.a.part = f.b.part = -1;
	}
}

/* A part of which something is wrong; 0: nothing. */
static int
part_faulty(unsigned fault)
{
	struct pair_geom geom = f.a.shm->pairs.geom;
	size_t size = pair_part_size(&geom);
	int fd = memfd_create("rocade-pair", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	const uint32_t reads = 1; /* the partner takes packets */

	if (fault == 1)
		seals &= ~F_SEAL_SHRINK;
	else if (fault == 2)
		seals &= ~F_SEAL_GROW;
	else if (fault == 3)
		size -= 4096;
	else if (fault == 4)
		size += 4096;
	else if (fault == 5)
		seals &= ~F_SEAL_FUTURE_WRITE;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(
		pwrite(fd, &reads, sizeof(reads), offsetof(struct pair_part, reads)),
		sizeof(reads));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

TEST_WITH(invalid_parts_are_refused, setup, teardown)
{
	unsigned fds = fds_count();

	for (unsigned fault = 1; fault < 5; fault++) {
		int fd = part_faulty(fault);

		assert_int_equal(
			side_event(&f.a, SW_PAIR_OWN, f.b.id, fd), SW_PAIR_FAILED);
		close(fd);
		assert_int_equal(f.a.shm->pairs.count, 0);
	}
	assert_int_equal(side_event(&f.a, SW_PAIR_OWN, f.b.id, -1), SW_PAIR_FAILED);
	assert_int_equal(fds_count(), fds);
	side_own(&f.a, f.b.id);
	for (unsigned fault = 1; fault < 6; fault++) {
		int fd = part_faulty(fault);

		assert_int_equal(
			side_event(&f.a, SW_PAIR_PEER, f.b.id, fd), SW_PAIR_FAILED);
		close(fd);
		assert_null(side_pair(&f.a)->peer);
	}
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, -1), SW_PAIR_FAILED);
	assert_int_equal(parts_mapped(), 1);
	assert_int_equal(fds_count(), fds + 2);
}

TEST_WITH(part_without_a_connection_is_refused, setup, teardown)
{
	unsigned fds = fds_count();
	int fd = part_create();

	assert_int_equal(
		side_event_fds(&f.a, SW_PAIR_OWN, f.b.id, &fd, 1), SW_PAIR_FAILED);
	assert_int_equal(f.a.shm->pairs.count, 0);
	assert_int_equal(parts_mapped(), 0);
	close(fd);
	assert_int_equal(fds_count(), fds);
}

TEST_WITH(another_geometry_is_refused, setup, teardown)
{
	int fd = part_create(), fds[] = {fd, fd};

	for (unsigned i = 0; i < 2; i++) {
		struct sw_reply reply = reply_valid(), none = reply_valid();

		reply.qpn = SW_PAIR_OWN;
		reply.client_id = f.b.id;
		reply.pair = f.a.shm->pairs.geom;
		if (i == 0)
			reply.pair.slots /= 2;
		else
			reply.pair.buf_size += 64;
		none.qpn = SW_PAIR_NONE;
		reply_send(f.a.d.fd, &reply, sizeof(reply), fds, 2);
		reply_send(f.a.d.fd, &none, sizeof(none), NULL, 0);
		pairs_serve(f.a.shm);
		(void)request_recv(f.a.d.fd);
		assert_int_equal(request_recv(f.a.d.fd).dest_qpn, SW_PAIR_FAILED);
	}
	close(fd);
}

TEST_WITH(events_out_of_order_are_refused, setup, teardown)
{
	int fd = part_faulty(0), own = part_create();

	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, fd), SW_PAIR_FAILED);
	assert_int_equal(side_event(&f.a, SW_PAIR_FAILED, f.b.id, -1), SW_PAIR_FAILED);
	assert_int_equal(side_event(&f.a, 77, f.b.id, -1), SW_PAIR_FAILED);
	side_own(&f.a, f.b.id);
	assert_int_equal(side_event(&f.a, SW_PAIR_OWN, f.b.id, own), SW_PAIR_FAILED);
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, 9, fd), SW_PAIR_FAILED);
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, fd), SW_PAIR_PEER);
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, fd), SW_PAIR_FAILED);
	assert_int_equal(parts_mapped(), 2);
	close(own);
	close(fd);
}

TEST_WITH(packets_left_at_the_end_are_taken, setup, teardown)
{
	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	pair_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 7, 1), 7);
	assert_int_equal(taken_count, 0);
	assert_int_equal(side_event(&f.b, SW_PAIR_END, f.a.id, -1), SW_PAIR_END);
	assert_int_equal(taken_count, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(taken[i], i + 1);
	assert_int_equal(f.b.shm->pairs.count, 0);
}

/* A slot stays: its QP waits for the daemon's answer. The end does not wait for that. */
TEST_WITH(end_is_not_held_up, setup, teardown)
{
	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	pair_open(&f);
	pairs_register_begin(f.b.shm, QP_1);
	assert_int_equal(side_send(&f.a, QP_1, 3, 1), 3);
	passes = 0;
	assert_int_equal(side_event(&f.b, SW_PAIR_END, f.a.id, -1), SW_PAIR_END);
	assert_true(passes < SLOTS);
	assert_int_equal(taken_count, 0);
	/* The answer comes when the pair is gone. */
	pairs_register_end(f.b.shm, QP_1, QP_1, f.a.id, true);
	assert_null(pairs_route(f.b.shm, QP_1));
}

/* Two programs form a pair once more. The QP waits for nothing that it has sent by the first one. */
TEST_WITH(second_pair_begins_anew, setup, teardown)
{
	struct pair_qp *q = &f.a.shm->pairs.qps[QP_1 & f.a.shm->pairs.mask];
	struct answer_wait wait = {.on = true};

	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	pair_open(&f);
	assert_int_equal(side_send(&f.a, QP_1, 7, 1), 7);
	assert_true(side_waits(&f.a, QP_1, &wait));
	assert_int_equal(side_event(&f.a, SW_PAIR_END, f.b.id, -1), SW_PAIR_END);
	assert_int_equal(side_event(&f.b, SW_PAIR_END, f.a.id, -1), SW_PAIR_END);
	close(f.a.part);
	close(f.b.part);
	pair_open(&f);
	assert_int_equal(q->state, PAIR_QP_ACCEPTED);
	assert_int_equal(side_send(&f.a, QP_1, 1, 1), 1);
	assert_int_equal(q->state, PAIR_QP_DIRECT);
	assert_true(side_waits(&f.a, QP_1, &wait));
	side_expect(&f.b, 1, 1);
	f.b.port.ops->rx_answered(f.b.shm);
	daemon_has_nothing(&f.a, QP_1, &wait);
	assert_false(side_waits(&f.a, QP_1, &wait));
}

/* Both accept packets of the pair. But the progress thread of one has not had a core since, and has not
 * mapped the part of the other: until then packets to it go by the daemon. */
TEST_WITH(partner_gets_nothing_before_it_reads, setup, teardown)
{
	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	parts_open(&f);
	assert_int_equal(side_event(&f.a, SW_PAIR_PEER, f.b.id, f.b.part), SW_PAIR_PEER);
	side_expect(&f.a, 0, 0);
	for (uint8_t i = 0; i < 2; i++) {
		assert_int_equal(side_send(&f.a, QP_1, 1, i), 1);
		daemon_forwards(&f.a, &f.b, 1);
		side_expect(&f.b, 1, i);
	}
	assert_int_equal(side_event(&f.b, SW_PAIR_PEER, f.a.id, f.a.part), SW_PAIR_PEER);
	assert_int_equal(side_send(&f.a, QP_1, 1, 2), 1);
	assert_int_equal(daemon_finds(&f.a), 0);
	side_expect(&f.b, 1, 2);
}

TEST_WITH(spoiled_pair_is_told_once, setup, teardown)
{
	struct sw_reply none = reply_valid();
	struct answer_wait wait = {.on = true};
	struct sw_request req;

	side_register(&f.a, QP_1, f.b.id, true);
	side_register(&f.b, QP_1, f.a.id, true);
	pair_open(&f);
	assert_ptr_equal(pairs_route(f.a.shm, QP_1), side_pair(&f.a));
	side_pair(&f.b)->own->cons = 5000;
	assert_true(side_waits(&f.a, QP_1, &wait)); /* asks the daemon */
	(void)daemon_takes_question(&f.a, QP_1, 0);
	assert_null(pairs_route(f.a.shm, QP_1));
	none.qpn = SW_PAIR_NONE;
	reply_send(f.a.d.fd, &none, sizeof(none), NULL, 0);
	reply_send(f.a.d.fd, &none, sizeof(none), NULL, 0);
	pairs_serve(f.a.shm);
	req = request_recv(f.a.d.fd);
	assert_true(req.type == SW_PAIR && req.qpn == f.b.id &&
		    req.dest_qpn == SW_PAIR_FAILED);
	assert_int_equal(request_recv(f.a.d.fd).dest_qpn, SW_PAIR_NONE);
	assert_false(f.a.shm->pairs.spoiled);
	/* Its QPs send by the daemon, whatever the index is now. */
	side_pair(&f.b)->own->cons = 0;
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(daemon_finds(&f.a), 1);
	assert_int_equal(side_event(&f.a, SW_PAIR_END, f.b.id, -1), SW_PAIR_END);
}

TEST_WITH(many_pairs_have_a_limit, setup, teardown)
{
	struct futex_word words[FUTEX_WORDS_MAX];
	int peer = part_faulty(0);

	for (uint32_t i = 0; i < PAIRS_MAX; i++) {
		int fd = part_create();

		assert_int_equal(side_event(&f.a, SW_PAIR_OWN, 10 + i, fd), SW_PAIR_OWN);
		close(fd);
		assert_int_equal(
			side_event(&f.a, SW_PAIR_PEER, 10 + i, peer), SW_PAIR_PEER);
	}
	f.a.part = part_create();
	assert_int_equal(side_event(&f.a, SW_PAIR_OWN, 99, f.a.part), SW_PAIR_FAILED);
	assert_int_equal(
		pairs_futex_words(f.a.shm, words, FUTEX_WORDS_MAX - 2), PAIRS_MAX + 1);
	assert_int_equal(pairs_futex_words(f.a.shm, words, 10), 10);
	/* One in the middle ends; its place is free. */
	assert_int_equal(side_event(&f.a, SW_PAIR_END, 20, -1), SW_PAIR_END);
	assert_int_equal(f.a.shm->pairs.count, PAIRS_MAX);
	assert_int_equal(
		pairs_futex_words(f.a.shm, words, FUTEX_WORDS_MAX - 2), PAIRS_MAX);
	side_expect(&f.a, 0, 0);
	side_register(&f.a, QP_1, 20, true);
	assert_null(pairs_route(f.a.shm, QP_1));
	side_register(&f.a, QP_1, 73, true);
	assert_ptr_equal(pairs_route(f.a.shm, QP_1), &f.a.shm->pairs.all[PAIRS_MAX - 1]);
	assert_int_equal(side_event(&f.a, SW_PAIR_OWN, 99, f.a.part), SW_PAIR_OWN);
	close(peer);
}

/* The words on which a thread sleeps change with the pairs that there are. */
TEST_WITH(sleeping_threads_look_again, setup, teardown)
{
	struct futex_word words[FUTEX_WORDS_MAX];
	const uint32_t *changes = &f.a.shm->pairs.changes;

	assert_int_equal(pairs_futex_words(f.a.shm, words, 9), 1);
	assert_int_equal(words[0].address, (uintptr_t)changes);
	assert_int_equal(words[0].seen, *changes);
	assert_true(words[0].flags & FUTEX_WORD_PRIVATE);
	asleep_set_how(&f.a.shm->region.client->rx_asleep, ASLEEP_FUTEX);
	pairs_show_asleep(f.a.shm);
	pair_open(&f);
	assert_int_equal(futex_wait_any(words, 1), 0); /* at once */
	/* The partner knows of the sleep that began before. */
	assert_int_equal(
		side_pair(&f.b)->peer->asleep, f.a.shm->region.client->rx_asleep);
	side_pair(&f.b)->own->wakes = 41;
	assert_int_equal(pairs_futex_words(f.a.shm, words, 9), 2);
	assert_int_equal(words[1].address, (uintptr_t)&side_pair(&f.a)->peer->wakes);
	assert_int_equal(words[1].seen, 41);
	assert_false(words[1].flags & FUTEX_WORD_PRIVATE);
	asleep_clear(&f.a.shm->region.client->rx_asleep);
	pairs_show_asleep(f.a.shm);
	assert_false(asleep_is_set(&side_pair(&f.b)->peer->asleep));
	assert_int_equal(side_event(&f.a, SW_PAIR_END, f.b.id, -1), SW_PAIR_END);
	/* Unmapped meanwhile: the thread looks again, too. */
	assert_int_equal(futex_wait_any(words, 2), 0);
	assert_int_equal(pairs_futex_words(f.a.shm, words, 9), 1);
}

static unsigned unshared;

static void
count_unshared(void *mem, size_t size)
{
	assert_int_equal(size, pair_part_size(&f.a.shm->pairs.geom));
	assert_int_equal(munmap(mem, size), 0);
	unshared++;
}

TEST_WITH(forked_child_has_no_pairs, setup, teardown)
{
	unsigned fds;

	side_register(&f.a, QP_1, f.b.id, true);
	pair_open(&f);
	unshared = 0;
	fds = fds_count();
	pairs_unshare(&f.a.shm->pairs, count_unshared);
	assert_int_equal(fds_count(), fds - 1);
	assert_int_equal(unshared, 2);
	assert_int_equal(parts_mapped(), 2);
	assert_int_equal(f.a.shm->pairs.count, 0);
	side_expect(&f.a, 0, 0);
	assert_int_equal(side_send(&f.a, QP_1, 1, 0), 1);
	assert_int_equal(daemon_finds(&f.a), 1);
}

/* The session has ended: there is nothing to serve. */
TEST_WITH(lost_daemon_ends_the_requests, setup, teardown)
{
	f.a.shm->pairs.spoiled = true;
	shutdown(f.a.d.fd, SHUT_RDWR);
	pairs_serve(f.a.shm);
	assert_int_equal(f.a.shm->pairs.count, 0);
}

TEST_WITH(environment_is_checked, setup, teardown)
{
	struct shm_pairs *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	setenv("ROCADE_OFF", "pairs", 1);
	pairs_init(p);
	assert_true(p->off);
	pthread_mutex_destroy(&p->serve_lock);
	pthread_mutex_destroy(&p->sleep_lock);
	unsetenv("ROCADE_OFF");
	free(p);
}
