/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts over the rings, with a daemon that is correct, slow, or faulty. */
#include <sys/syscall.h>

#include "shm_fixture.h"

/* In place of the C library's: the next calls fail with this error. */
static struct {
	unsigned calls;
	int error;
} fallocate_fails;

int
fallocate(int fd, int mode, off_t at, off_t len)
{
	if (fallocate_fails.calls == 0)
		return (int)syscall(SYS_fallocate, fd, mode, at, len);
	fallocate_fails.calls--;
	errno = fallocate_fails.error;
	return -1;
}

struct shm_fixture {
	struct daemon_end d;
	struct port port;
	struct sw_device device;
	struct shm *shm;
	unsigned fds;
	blkcnt_t blocks; /* of both parts of the memory, once the client is attached */
};

static void
fixture_open(struct shm_fixture *b)
{
	struct sw_reply reply = reply_valid();
	struct stat client, daemon;
	struct session s;
	int mem[2];

	b->fds = fds_count();
	daemon_open(&b->d, &s);
	reply_send(b->d.fd, &reply, sizeof(reply), b->d.fds, SW_ATTACH_FDS);
	reply.device.mtu = 1500; /* it changes between the two */
	reply_send(b->d.fd, &reply, sizeof(reply), NULL, 0);
	mem[0] = dup(b->d.fds[SW_FD_CLIENT_MEM]);
	mem[1] = dup(b->d.fds[SW_FD_DAEMON_MEM]);
	daemon_close_passed(&b->d);
	assert_int_equal(shm_attach(&s, &b->port, &b->device, &b->shm), 0);
	assert_int_equal(fstat(mem[0], &client), 0);
	assert_int_equal(fstat(mem[1], &daemon), 0);
	b->blocks = client.st_blocks + daemon.st_blocks;
	assert_int_equal(fcntl(mem[0], F_GET_SEALS), REGION_SIZE_SEALS | WRITER_SEALS);
	close(mem[0]);
	close(mem[1]);
	request_recv_with_key(b->d.fd, SW_ATTACH);
	assert_int_equal(request_recv(b->d.fd).type, SW_START);
	assert_int_equal(b->device.mtu, 1500);
}

/* Proves that every buffer is back and every descriptor closed. */
static void
fixture_close(struct shm_fixture *b)
{
	struct pkt none;

	assert_int_equal(b->port.ops->tx_alloc(b->shm, &none, 0), 0);
	assert_int_equal(b->shm->free_count, b->shm->region.geom.tx_bufs);
	assert_int_equal(b->shm->rx_next, b->shm->rx.cons);
	b->port.ops->close(b->port.drv);
	daemon_close(&b->d);
	assert_int_equal(fds_count(), b->fds);
}

static unsigned
send_n(struct shm_fixture *b, unsigned n, uint16_t len)
{
	struct pkt pkts[16];
	unsigned got = b->port.ops->tx_alloc(b->shm, pkts, n), sent;

	for (unsigned i = 0; i < got; i++) {
		assert_int_equal(pkts[i].room, 256);
		memset(pkts[i].data, (int)(i + 1), len);
		pkts[i].len = len;
		pkts[i].flags = 0;
	}
	sent = b->port.ops->tx_burst(b->shm, pkts, got);
	b->port.ops->tx_release(b->shm, pkts + sent, got - sent);
	return sent;
}

/* The daemon takes n packets and returns their buffers. */
static void
daemon_takes(struct shm_fixture *b, unsigned n)
{
	assert_true(ring_cons_refresh(&b->d.tx));
	assert_true(ring_count(&b->d.tx) >= n);
	ring_release(&b->d.tx, n);
}

static void
daemon_sends(struct shm_fixture *b, uint16_t len, uint16_t flags)
{
	struct ring_desc desc = {
		.buf = b->d.rx.prod & b->d.rx.mask, .len = len, .flags = flags};

	assert_true(ring_prod_refresh(&b->d.rx));
	assert_true(ring_room(&b->d.rx) != 0);
	memset(region_rx_buf(&b->d.region, desc.buf), (int)b->d.rx.prod, 256);
	ring_put(&b->d.rx, &desc);
	ring_publish(&b->d.rx);
}

TEST(attach_sets_up_the_port)
{
	struct shm_fixture b;

	fixture_open(&b);
	assert_int_equal(b.port.queue_count, 1);
	assert_int_equal(b.port.caps.max_frame, 256);
	assert_int_equal(b.port.caps.rx_ring, 8);
	assert_memory_equal(b.port.mac, "\x02\x00\x00\x00\x00\x07", 6);
	assert_string_equal(b.device.name, "rocade0");
	assert_true(b.port.ops->link_up(b.port.drv));
	b.shm->progress_thread.lost = true;
	assert_false(b.port.ops->link_up(b.port.drv));
	fixture_close(&b);
}

TEST(tx_buffers_return)
{
	struct shm_fixture b;

	fixture_open(&b);
	for (unsigned round = 0; round < 50; round++) {
		assert_int_equal(send_n(&b, 3, 100), 3);
		assert_true(ring_cons_refresh(&b.d.tx));
		assert_int_equal(ring_count(&b.d.tx), 3);
		for (unsigned i = 0; i < 3; i++) {
			struct ring_desc desc = ring_peek(&b.d.tx, i);

			assert_true(desc.buf < 12);
			assert_int_equal(desc.len, 100);
			assert_int_equal(region_tx_buf(&b.d.region, desc.buf)[99], i + 1);
		}
		daemon_takes(&b, 3);
	}
	fixture_close(&b);
}

TEST(tx_is_limited_by_the_ring)
{
	struct shm_fixture b;

	fixture_open(&b);
	assert_int_equal(send_n(&b, 12, 60), 8); /* four are released */
	assert_int_equal(send_n(&b, 12, 60), 0);
	daemon_takes(&b, 2);
	assert_int_equal(send_n(&b, 12, 60), 2);
	daemon_takes(&b, 8);
	assert_int_equal(send_n(&b, 12, 60), 8);
	daemon_takes(&b, 8);
	fixture_close(&b);
}

TEST(sleeping_daemon_is_woken_once)
{
	uint64_t count;
	struct shm_fixture b;

	fixture_open(&b);
	assert_int_equal(send_n(&b, 1, 60), 1);
	assert_int_equal(read(b.d.daemon_wake_fd, &count, sizeof(count)), -1);
	asleep_set(&b.d.region.daemon->tx_asleep);
	assert_int_equal(send_n(&b, 1, 60), 1);
	assert_int_equal(send_n(&b, 1, 60), 1);
	assert_int_equal(read(b.d.daemon_wake_fd, &count, sizeof(count)), 8);
	assert_int_equal(count, 1);
	daemon_takes(&b, 3);
	fixture_close(&b);
}

TEST(rx_buffers_return_in_order)
{
	struct pkt pkts[8];
	struct shm_fixture b;

	fixture_open(&b);
	for (unsigned round = 0; round < 20; round++) {
		uint32_t first = b.d.rx.prod;

		daemon_sends(&b, 64, RING_CKSUM_OK);
		daemon_sends(&b, 65, 0);
		daemon_sends(&b, 66, 0);
		assert_int_equal(b.port.ops->rx_burst(b.shm, pkts, 2), 2);
		assert_int_equal(b.port.ops->rx_burst(b.shm, pkts + 2, 6), 1);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(pkts[i].len, 64 + i);
			assert_int_equal(
				((uint8_t *)pkts[i].data)[0], (uint8_t)(first + i));
		}
		assert_int_equal(pkts[0].flags, PKT_RX_IPV4_CKSUM_OK);
		assert_int_equal(pkts[1].flags, 0);
		/* Released out of order: the daemon gets no buffer back before the first
		 * one. */
		b.port.ops->rx_release(b.shm, &pkts[1], 1);
		assert_int_equal(b.d.region.client->rx_cons, first);
		b.port.ops->rx_release(b.shm, &pkts[0], 1);
		assert_int_equal(b.d.region.client->rx_cons, first + 2);
		b.port.ops->rx_release(b.shm, &pkts[2], 1);
		assert_int_equal(b.d.region.client->rx_cons, first + 3);
	}
	fixture_close(&b);
}

TEST(corrupt_ring_values_are_bounded)
{
	struct pkt pkt;
	uint32_t cons;
	struct shm_fixture b;

	fixture_open(&b);
	daemon_sends(&b, 60000, 0);
	assert_int_equal(b.port.ops->rx_burst(b.shm, &pkt, 1), 1);
	assert_int_equal(pkt.len, 256);
	b.port.ops->rx_release(b.shm, &pkt, 1);
	/* More packets than the ring holds: none is received. */
	b.d.region.daemon->rx_prod = b.d.rx.prod + 9;
	assert_int_equal(b.port.ops->rx_burst(b.shm, &pkt, 1), 0);
	/* The daemon acknowledges more than was sent: no buffer is freed twice. */
	assert_int_equal(send_n(&b, 8, 60), 8);
	cons = b.d.region.daemon->tx_cons;
	b.d.region.daemon->tx_cons = cons + 100;
	assert_int_equal(send_n(&b, 12, 60), 0);
	assert_int_equal(b.shm->free_count, 4);
	b.d.region.daemon->tx_cons = cons;
	daemon_takes(&b, 8);
	fixture_close(&b);
}

TEST(dead_port_moves_no_packets)
{
	struct pkt pkt;
	uint32_t prod;
	struct shm_fixture b;

	fixture_open(&b);
	daemon_sends(&b, 64, 0);
	b.shm->dead = true; /* as in a child after fork() */
	prod = b.d.region.client->tx_prod;
	assert_int_equal(send_n(&b, 3, 60), 3);
	assert_int_equal(b.d.region.client->tx_prod, prod);
	assert_int_equal(b.port.ops->rx_burst(b.shm, &pkt, 1), 0);
	assert_false(b.port.ops->link_up(b.port.drv));
	fixture_close(&b);
}

/* Replies that are no valid attachment: refused, and nothing remains. */
TEST(invalid_attach_reply_is_refused)
{
	unsigned before = fds_count();

	for (unsigned fault = 0; fault < 6; fault++) {
		struct sw_reply reply = reply_valid();
		struct sw_device device;
		struct daemon_end d;
		struct session s;
		struct port port;
		struct shm *shm;
		int rc, want = -EPROTO;

		daemon_open(&d, &s);
		if (fault == 0) {
			reply.error = want = ENOSPC;
			want = -want;
		} else if (fault == 1) {
			reply.geom.tx_slots = 3;
		} else if (fault == 2) {
			reply.geom.rx_slots = UINT32_MAX;
		}
		if (fault == 5) {
			shutdown(d.fd, SHUT_RDWR);
			want = -ENODEV;
		} else {
			reply_send(d.fd, &reply, sizeof(reply), d.fds,
				fault == 3   ? SW_ATTACH_FDS - 1
				: fault == 4 ? 0
					     : SW_ATTACH_FDS);
		}
		daemon_close_passed(&d);
		rc = shm_attach(&s, &port, &device, &shm);
		assert_int_equal(rc, want);
		daemon_close(&d);
		assert_int_equal(fds_count(), before);
	}
}

/* Memory that could raise SIGBUS in the client, or that others than the daemon write. */
static int
memory_faulty(unsigned fault, size_t size)
{
	static const int seals[] = {F_SEAL_GROW | F_SEAL_FUTURE_WRITE,
		F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK | F_SEAL_GROW};
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	int fd;

	if (fault == 3) /* no memfd */
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	fd = memfd_create("rocade", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fault == 4)
		size -= 4096;
	else if (fault == 5)
		size += 4096;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, fault < RTE_DIM(seals) ? seals[fault] : all), 0);
	return fd;
}

static int
attach_to(struct daemon_end *d, struct session *s)
{
	struct sw_reply reply = reply_valid();
	struct sw_device device;
	struct port port;
	struct shm *shm;

	reply_send(d->fd, &reply, sizeof(reply), d->fds, SW_ATTACH_FDS);
	daemon_close_passed(d);
	return shm_attach(s, &port, &device, &shm);
}

TEST(memory_is_checked)
{
	const struct region_geom geom = reply_valid().geom;
	unsigned before = fds_count();

	for (unsigned i = 0; i < 12; i++) {
		bool client = i >= 6;
		struct daemon_end d;
		struct session s;
		int *fd;

		/* The client itself adds F_SEAL_FUTURE_WRITE to its own memory. */
		if (client && i % 6 == 2)
			continue;
		daemon_open(&d, &s);
		fd = &d.fds[client ? SW_FD_CLIENT_MEM : SW_FD_DAEMON_MEM];
		close(*fd);
		*fd = memory_faulty(i % 6,
			client ? region_client_size(&geom) : region_daemon_size(&geom));
		assert_int_equal(attach_to(&d, &s), -EPROTO);
		daemon_close(&d);
		assert_int_equal(fds_count(), before);
	}
}

/* Whether there are huge pages for the file would show at the first access only. */
TEST(huge_pages_are_refused)
{
	struct sw_reply reply = reply_valid();
	unsigned before = fds_count();
	struct sw_device device;
	struct daemon_end d;
	struct session s;
	struct port port;
	struct shm *shm;
	void *own;
	int fd = memfd_create("rocade", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0)
		skip(); /* a kernel without huge pages */
	/* A geometry whose size is that of a huge page. */
	reply.geom.rx_slots = 128;
	reply.geom.buf_size = 16320;
	assert_int_equal(region_daemon_size(&reply.geom), 2 << 20);
	daemon_open(&d, &s);
	assert_int_equal(ftruncate(fd, (off_t)region_daemon_size(&reply.geom)), 0);
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, REGION_SIZE_SEALS | F_SEAL_FUTURE_WRITE), 0);
	close(d.fds[SW_FD_DAEMON_MEM]);
	d.fds[SW_FD_DAEMON_MEM] = fd;
	close(d.fds[SW_FD_CLIENT_MEM]);
	d.fds[SW_FD_CLIENT_MEM] = memory_create(region_client_size(&reply.geom), 0, &own);
	munmap(own, region_client_size(&reply.geom));
	reply_send(d.fd, &reply, sizeof(reply), d.fds, SW_ATTACH_FDS);
	daemon_close_passed(&d);
	assert_int_equal(shm_attach(&s, &port, &device, &shm), -EPROTO);
	daemon_close(&d);
	assert_int_equal(fds_count(), before);
}

/* The pages are charged to this process: it is the first one to touch them. */
TEST(all_pages_are_allocated)
{
	struct shm_fixture b;

	for (unsigned i = 0; i < 2; i++) {
		/* A signal undoes what a call has allocated. */
		fallocate_fails.calls = i;
		fallocate_fails.error = EINTR;
		fixture_open(&b);
		assert_int_equal(fallocate_fails.calls, 0);
		assert_int_equal(
			b.blocks * 512, region_client_size(&b.d.region.geom) +
						region_daemon_size(&b.d.region.geom));
		fixture_close(&b);
	}
}

TEST(missing_memory_is_reported)
{
	unsigned before = fds_count();
	struct daemon_end d;
	struct session s;

	daemon_open(&d, &s);
	fallocate_fails.calls = 1;
	fallocate_fails.error = ENOMEM;
	assert_int_equal(attach_to(&d, &s), -ENOMEM);
	daemon_close(&d);
	assert_int_equal(fds_count(), before);
}

TEST(device_hooks_send_requests)
{
	uint8_t sgid[16] = {1}, dgid[16] = {2};
	struct sw_reply reply = reply_valid();
	struct sw_request req;
	uint32_t qpn = 0;
	struct shm_fixture b;
	struct dev *dev;

	fixture_open(&b);
	b.shm->dev = dev = lock_device_make();
	reply.qpn = 4711;
	for (unsigned i = 0; i < 6; i++)
		reply_send(b.d.fd, &reply, sizeof(reply), NULL, 0);
	assert_int_equal(shm_hooks.qpn_take(b.shm, &qpn), 0);
	assert_int_equal(qpn, 4711);
	assert_int_equal(request_recv(b.d.fd).type, SW_QPN_TAKE);
	shm_hooks.qpn_give(b.shm, 4711);
	req = request_recv(b.d.fd);
	assert_true(req.type == SW_QPN_GIVE && req.qpn == 4711);
	assert_int_equal(shm_hooks.peer_set(b.shm, 4711, sgid, dgid, 42), 0);
	req = request_recv(b.d.fd);
	assert_true(req.type == SW_PEER_SET && req.qpn == 4711 && req.dest_qpn == 42);
	assert_memory_equal(req.sgid, sgid, 16);
	assert_memory_equal(req.dgid, dgid, 16);
	shm_hooks.peer_clear(b.shm, 4711);
	req = request_recv(b.d.fd);
	assert_true(req.type == SW_PEER_CLEAR && req.qpn == 4711);
	assert_int_equal(shm_hooks.group(b.shm, 4711, dgid, true), 0);
	req = request_recv(b.d.fd);
	assert_true(req.type == SW_GROUP_JOIN && req.qpn == 4711);
	assert_memory_equal(req.dgid, dgid, 16);
	assert_int_equal(shm_hooks.group(b.shm, 4711, dgid, false), 0);
	assert_int_equal(request_recv(b.d.fd).type, SW_GROUP_LEAVE);
	reply.error = ENOMEM;
	reply_send(b.d.fd, &reply, sizeof(reply), NULL, 0);
	qpn = 1;
	assert_int_equal(shm_hooks.qpn_take(b.shm, &qpn), -ENOMEM);
	assert_int_equal(qpn, 1);
	fixture_close(&b);
	lock_device_free(dev);
}
