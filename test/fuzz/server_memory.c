/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a client shares with the daemon, as the client sees and changes it. */
#include "server_world.h"

#include "port/gid.h"
#include "wire/build.h"

#define HEAD_BYTES 2048 /* the indices and the first descriptors */

void
shared_map(struct client *c)
{
	const struct region_geom *geom = &c->reply.geom;
	size_t ours = region_client_size(geom), theirs = region_daemon_size(geom);
	void *client = mmap(NULL, ours, PROT_READ | PROT_WRITE, MAP_SHARED,
		c->fds[SW_FD_CLIENT_MEM], 0);
	void *daemon;

	/* After SW_START it is too late. */
	FUZZ_CHECK(client != MAP_FAILED || errno == EPERM);
	if (client == MAP_FAILED)
		return;
	daemon = mmap(NULL, theirs, PROT_READ, MAP_SHARED, c->fds[SW_FD_DAEMON_MEM], 0);
	FUZZ_CHECK(daemon != MAP_FAILED);
	FUZZ_CHECK(fallocate(c->fds[SW_FD_CLIENT_MEM], 0, 0, (off_t)ours) == 0);
	FUZZ_CHECK(fallocate(c->fds[SW_FD_DAEMON_MEM], 0, 0, (off_t)theirs) == 0);
	(void)fcntl(c->fds[SW_FD_CLIENT_MEM], F_ADD_SEALS, REGION_WRITER_SEALS);
	c->region_len = ours;
	region_init(&c->region, client, daemon, geom);
}

void
shared_unmap(struct client *c)
{
	if (c->region_len == 0)
		return;
	munmap(c->region.client, region_client_size(&c->region.geom));
	munmap(c->region.daemon, region_daemon_size(&c->region.geom));
	c->region_len = 0;
}

static void
pair_part_fill(int fd, size_t size)
{
	(void)fallocate(fd, 0, 0, (off_t)size);
	(void)fcntl(fd, F_ADD_SEALS, REGION_WRITER_SEALS);
}

void
pair_event_take(struct client *c, const int *fds, unsigned n)
{
	const struct sw_reply *reply = &c->reply;

	FUZZ_CHECK(reply->qpn < SW_PAIR_FAILED);
	/* The own part comes with the connection. */
	FUZZ_CHECK(n == (reply->qpn == SW_PAIR_OWN           ? 2
				: reply->qpn == SW_PAIR_PEER ? 1
							     : 0));
	c->pair_event = reply->qpn;
	c->pair_partner = reply->client_id;
	if (n == 0)
		return;
	FUZZ_CHECK(pair_geom_ok(&reply->pair));
	if (reply->qpn == SW_PAIR_PEER)
		FUZZ_CHECK((fcntl(fds[0], F_GET_SEALS) & F_SEAL_FUTURE_WRITE) != 0);
	else if (!c->pair_lazy)
		pair_part_fill(fds[0], pair_part_size(&reply->pair));
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Builds a frame to any QP. Returns its length. */
static uint16_t
frame_make(const struct client *c, struct input *in, uint8_t *to)
{
	static const uint8_t opcodes[] = {OPCODE_UD_SEND_ONLY, OPCODE_RC_SEND_ONLY,
		OPCODE_RC_ACKNOWLEDGE, OPCODE_CNP};
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	uint8_t how = take8(in);
	struct bth_fields bth = {.dest_qpn = how & 4 ? QPN_MULTICAST : qpn_take_any(in),
		.pkey = PKEY_DEFAULT,
		.opcode = opcodes[how % RTE_DIM(opcodes)]};
	struct pkt pkt = {.data = to, .room = (uint16_t)c->region.geom.buf_size};
	struct path_hdr hdr;
	uint8_t *ext;

	FUZZ_CHECK(gid_parse(ADDRESS, addr.src_gid, NULL) == 0);
	FUZZ_CHECK(gid_parse(how & 4 ? GROUP : ADDRESS, addr.dst_gid, NULL) == 0);
	path_hdr_init(&hdr, &addr);
	ext = frame_begin(&hdr, &pkt, &bth, 0);
	memset(ext, 0, op_rows[bth.opcode].ext_len);
	if (bth.opcode == OPCODE_UD_SEND_ONLY)
		be24_put(((struct deth *)ext)->src_qpn, c->qpns[0]);
	frame_end(&hdr, &pkt, 0);
	return pkt.len;
}

static void
packet_publish(struct client *c, struct input *in)
{
	uint32_t buf = take8(in) % c->region.geom.tx_bufs;
	struct ring_desc desc = {
		.buf = buf, .qpn = take8(in) & 1 ? qpn_take_any(in) : c->qpns[0]};

	desc.len = frame_make(c, in, region_tx_buf(&c->region, buf));
	c->region.tx_desc[c->tx_prod & (c->region.geom.tx_slots - 1)] = desc;
	__atomic_store_n(&c->region.client->tx_prod, ++c->tx_prod, __ATOMIC_RELEASE);
}

static void
memory_overwrite(struct client *c, struct input *in)
{
	size_t at = take16(in) % HEAD_BYTES, len = take8(in) % 16;
	const uint8_t *bytes = take_bytes(in, &len);

	memcpy((uint8_t *)c->region.client + at, bytes, len);
}

/* Changes the client's report: its peers, and the numbers of its rows. */
static void
report_overwrite(struct client *c, struct input *in)
{
	struct report *report = c->region.report;
	size_t at = take16(in) % sizeof(report->peers), len = take8(in) % 16;
	const uint8_t *bytes = take_bytes(in, &len);

	len = RTE_MIN(len, sizeof(report->peers) - at);
	memcpy((uint8_t *)report->peers + at, bytes, len);
	report->qp_count = report->peer_count = take16(in);
}

void
memory_step(struct client *c, struct input *in)
{
	uint8_t how = take8(in);

	if (c->region_len == 0)
		return;
	switch (how % 8) {
	case 0:
		if (how & 8)
			report_overwrite(c, in);
		else
			memory_overwrite(c, in);
		break;
	case 1: /* takes all that has come */
		__atomic_store_n(&c->region.client->rx_cons,
			__atomic_load_n(&c->region.daemon->rx_prod, __ATOMIC_ACQUIRE),
			__ATOMIC_RELEASE);
		break;
	case 2:
		FUZZ_CHECK(
			ftruncate(c->fds[how & 8 ? SW_FD_DAEMON_MEM : SW_FD_CLIENT_MEM],
				take16(in)) != 0);
		break;
	case 3:
		(void)fallocate(c->fds[how & 8 ? SW_FD_DAEMON_MEM : SW_FD_CLIENT_MEM],
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)take8(in) << 12, 4096);
		break;
	case 4:
		(void)fcntl(c->fds[SW_FD_CLIENT_MEM], F_ADD_SEALS, 1 << take8(in) % 5);
		break;
	default:
		packet_publish(c, in);
		break;
	}
}

void
memory_check(void)
{
	const struct client *c = &world.honest;
	struct region_client *own = c->region.client;
	uint32_t end = __atomic_load_n(&c->region.daemon->rx_prod, __ATOMIC_ACQUIRE);

	for (uint32_t at = own->rx_cons; at != end; at++) {
		uint32_t slot = at & (c->region.geom.rx_slots - 1);
		struct pkt pkt = {.data = region_rx_buf(&c->region, slot),
			.len = c->region.rx_desc[slot].len,
			.room = c->region.rx_desc[slot].len,
			.flags = PKT_RX_IPV4_CKSUM_OK};
		struct pkt_view view;

		FUZZ_CHECK(pkt_parse_headers(&pkt, 0, &view) == DROP_none);
		FUZZ_CHECK(view.op->service == SERVICE_UD);
	}
	__atomic_store_n(&own->rx_cons, end, __ATOMIC_RELEASE);
}
