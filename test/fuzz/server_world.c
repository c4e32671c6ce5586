/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <sys/timerfd.h>

#include "base/random.h"
#include "engine/clock.h"
#include "server_world.h"

#define PID_FIRST 0x40000000 /* no such process: only the end of a socket is seen */
#define UID_HONEST 1000
#define UID_HOSTILE 1001
#define MTU 576
#define RING 64
#define IDS 32     /* of a process */
#define TURNS 4096 /* of the loop, in which the honest client is answered */
#define STEP_NS NS_PER_US

struct server_world world;

/* ---- In the place of the functions without `__wrap_` (linker option --wrap) ---- */

uint64_t __wrap_clock_now(void);
uint64_t __wrap_clock_thread_cpu(void);
int __wrap_sched_yield(void);
int __wrap_random_key_draw(struct random_key *key);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out);
int __real_ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out);

uint64_t
__wrap_clock_now(void)
{
	return world.now += STEP_NS;
}

uint64_t
__wrap_clock_thread_cpu(void)
{
	return world.now += STEP_NS;
}

/* The machine's other processes need not run first. */
int
__wrap_sched_yield(void)
{
	return 0;
}

int
__wrap_random_key_draw(struct random_key *key)
{
	*key = (struct random_key){{1, 2}};
	return 0;
}

/* The daemon asks who has connected, in the order in which they have. */
int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_PEERCRED) {
		const struct client *c = world.connecting[world.connect_head++ %
							  RTE_DIM(world.connecting)];
		struct ucred who = {.pid = c->pid, .uid = c->uid, .gid = c->uid};

		FUZZ_CHECK(
			*len >= sizeof(who) && world.connect_head <= world.connect_tail);
		memcpy(value, &who, sizeof(who));
		return 0;
	}
	return __real_getsockopt(fd, level, name, value, len);
}

int
__wrap_ucm_create(const struct ucm_conf *conf, uint64_t now, struct ucm **out)
{
	struct ucm_conf small = *conf;
	int rc;

	small.limits.ids = IDS;
	small.limits.channels = 2 * CHANNELS;
	rc = __real_ucm_create(&small, now, out);
	world.ucm = *out;
	return rc;
}

/* ---- Connections ---- */

static void
client_init(struct client *c, uint32_t uid, pid_t pid)
{
	*c = (struct client){.fd = -1, .uid = uid, .pid = pid};
	memset(c->fds, -1, sizeof(c->fds));
}

void
client_open(struct client *c)
{
	if (c->fd >= 0 ||
		world.connect_tail - world.connect_head == RTE_DIM(world.connecting))
		return;
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FUZZ_CHECK(c->fd >= 0);
	if (connect(c->fd, (struct sockaddr *)&world.b.d->addr,
		    sizeof(world.b.d->addr)) == 0) {
		world.connecting[world.connect_tail++ % RTE_DIM(world.connecting)] = c;
	} else { /* too many wait */
		close(c->fd);
		c->fd = -1;
	}
}

static void
fds_close(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void
client_end(struct client *c)
{
	shared_unmap(c);
	fds_close(c->fds, SW_ATTACH_FDS);
	fds_close(c->channels, c->channel_count);
	fds_close(&c->fd, 1);
	client_init(c, c->uid, c->pid);
}

/* ---- Messages ---- */

#define SENT_MAX 253 /* descriptors in a message, as the kernel allows (SCM_MAX_FD) */

void
client_send(struct client *c, const void *bytes, size_t len, unsigned fds)
{
	char control[CMSG_SPACE(SENT_MAX * sizeof(int))] __attribute__((aligned(8)));
	struct iovec from = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &from, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (c->fd < 0)
		return;
	fds = RTE_MIN(fds, (unsigned)SENT_MAX);
	if (fds != 0) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fds * sizeof(int));
		for (unsigned i = 0; i < fds; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int),
				c->fds[1] >= 0 && i % 2 ? &c->fds[1] : &c->fd,
				sizeof(int));
	}
	(void)sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
client_ask(struct client *c, enum sw_request_type type, uint32_t qpn, uint32_t dest_qpn,
	const char *group)
{
	struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = type,
		.qpn = qpn,
		.dest_qpn = dest_qpn};

	FUZZ_CHECK(gid_parse(ADDRESS, req.sgid, NULL) == 0);
	FUZZ_CHECK(gid_parse(group != NULL ? group : ADDRESS, req.dgid, NULL) == 0);
	client_send(c, &req, sizeof(req), 0);
}

void
client_command(
	struct client *c, uint32_t channel, uint32_t cmd, const void *bytes, size_t len)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = channel,
		.cmd = cmd,
		.len = (uint32_t)len};

	memcpy(req.bytes, bytes, RTE_MIN(len, sizeof(req.bytes)));
	client_send(c, &req, sizeof(req), 0);
}

/* ---- Replies ---- */

static void
attached(struct client *c, const int *fds, unsigned n)
{
	FUZZ_CHECK(n == SW_ATTACH_FDS && c->fds[0] < 0);
	memcpy(c->fds, fds, sizeof(c->fds));
	shared_map(c);
}

static void
channel_opened(struct client *c, int *fds, unsigned n)
{
	FUZZ_CHECK(n == 1);
	if (c->channel_count == CHANNELS) {
		fds_close(fds, n);
		return;
	}
	c->channel_numbers[c->channel_count] = c->reply.qpn;
	c->channels[c->channel_count++] = fds[0];
}

static void
reply_take(struct client *c, const struct sw_reply *reply, int *fds, unsigned n)
{
	FUZZ_CHECK(reply->magic == SW_PROTO_MAGIC && reply->error >= 0);
	c->reply = *reply;
	c->replies++;
	if (reply->error == 0 && reply->type == SW_ATTACH) {
		attached(c, fds, n);
	} else if (reply->error == 0 && reply->type == SW_CM_OPEN) {
		channel_opened(c, fds, n);
	} else if (reply->error == 0 && reply->type == SW_PAIR) {
		pair_event_take(c, fds, n);
	} else {
		FUZZ_CHECK(n == 0);
		if (reply->error == 0 && reply->type == SW_QPN_TAKE)
			c->qpns[c->qpn_count++ % QPNS] = reply->qpn;
	}
}

/* An error of another version of the protocol is a struct sw_reply. */
static bool
is_data(const struct sw_data_reply *reply, size_t len)
{
	return (reply->type == SW_STATUS || reply->type == SW_REPORT ||
		       reply->type == SW_FLIGHT) &&
	       (reply->error == 0 || len != sizeof(struct sw_reply));
}

/* A user is shown its own rows only. */
static void
data_check(const struct client *c, const struct sw_data_reply *reply, size_t len)
{
	static const char row[] = "\"uid\": 1000";
	const struct sw_client *shown;

	static_assert(UID_HONEST == 1000, "as in the row");
	FUZZ_CHECK(len == offsetof(struct sw_data_reply, bytes) + reply->len);
	FUZZ_CHECK(c == &world.honest || reply->len == 0 ||
		   memmem(reply->bytes, reply->len, row, strlen(row)) == NULL);
	if (reply->error != 0 || reply->type == SW_STATUS)
		return;
	TAILQ_FOREACH (shown, &world.b.d->sw->clients, link) {
		if (shown->id != reply->id)
			continue;
		FUZZ_CHECK(shown->user->uid == c->uid);
		if (reply->type == SW_REPORT)
			report_check(shown, reply->bytes, reply->len);
		else
			FUZZ_CHECK(reply->len == sizeof(struct report_flight));
	}
}

/* Reads a message. Returns false if there is none now; ends a client whose connection
 * has ended. */
static bool
message_read(struct client *c)
{
	static union {
		struct sw_reply reply;
		struct sw_cm_reply cm;
		struct sw_data_reply data;
	} bytes;
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec to = {.iov_base = &bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *cmsg = len > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fds[8];
	unsigned n = 0;

	if (len < 0 && (errno == EAGAIN || errno == ENOTCONN))
		return false;
	if (len <= 0) {
		client_end(c);
		return false;
	}
	if (cmsg != NULL) {
		n = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(cmsg), n * sizeof(int));
	}
	if (len == sizeof(bytes.cm) && bytes.cm.type == SW_CM_COMMAND) {
		FUZZ_CHECK(n == 0 && bytes.cm.len <= UCM_MAX && bytes.cm.error >= 0);
		c->cm_reply = bytes.cm;
		c->cm_replies++;
	} else if (is_data(&bytes.data, (size_t)len)) {
		FUZZ_CHECK(n == 0);
		data_check(c, &bytes.data, (size_t)len);
	} else {
		FUZZ_CHECK(len == sizeof(bytes.reply));
		reply_take(c, &bytes.reply, fds, n);
	}
	return true;
}

/* The user of a deaf client is charged for its connection until the client closes its end. */
static bool
is_ended(const struct client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 1;
}

static void
replies_read(struct client *c)
{
	if (c->fd >= 0 && c->deaf && is_ended(c))
		client_end(c);
	while (c->fd >= 0 && !c->deaf && message_read(c))
		continue;
}

void
world_turn(void)
{
	rocade_daemon_stop(world.b.d);
	FUZZ_CHECK(rocade_daemon_run(world.b.d) == 0);
	replies_read(&world.honest);
	for (unsigned i = 0; i < HOSTILES; i++)
		replies_read(&world.hostile[i]);
}

void
world_wait(uint64_t ns)
{
	world.now += ns;
	rdmacm_timer(world.b.d);
	world_turn();
}

/* ---- The honest client ---- */

int
honest_ask(enum sw_request_type type, uint32_t qpn, uint32_t dest_qpn)
{
	struct client *c = &world.honest;
	unsigned before = c->replies;

	client_ask(c, type, qpn, dest_qpn,
		type == SW_GROUP_JOIN || type == SW_GROUP_LEAVE ? GROUP : NULL);
	for (unsigned i = 0; c->replies == before; i++) {
		FUZZ_CHECK(i < TURNS && c->fd >= 0);
		world_turn();
	}
	return c->reply.error;
}

int
honest_command(uint32_t cmd, const void *bytes, size_t len)
{
	struct client *c = &world.honest;
	unsigned before = c->cm_replies;

	client_command(c, c->channel_numbers[0], cmd, bytes, len);
	for (unsigned i = 0; c->cm_replies == before; i++) {
		FUZZ_CHECK(i < TURNS && c->fd >= 0);
		world_turn();
	}
	return c->cm_reply.error;
}

/* Two QPs that are connected with each other, one of them in a group, and a listener. */
static void
honest_open(void)
{
	struct client *c = &world.honest;
	struct rdma_ucm_create_id create = {.ps = RDMA_PS_TCP};
	struct rdma_ucm_bind_ip bind = {.id = 1};
	struct rdma_ucm_listen listen = {.id = 1, .backlog = 2};
	struct sockaddr_in *sa = (struct sockaddr_in *)&bind.addr;

	client_open(c);
	FUZZ_CHECK(honest_ask(SW_ATTACH, 0, 0) == 0);
	FUZZ_CHECK(honest_ask(SW_START, 0, 0) == 0);
	FUZZ_CHECK(honest_ask(SW_CM_OPEN, 0, 0) == 0);
	FUZZ_CHECK(honest_ask(SW_QPN_TAKE, 0, 0) == 0);
	FUZZ_CHECK(honest_ask(SW_QPN_TAKE, 0, 0) == 0);
	FUZZ_CHECK(honest_ask(SW_PEER_SET, c->qpns[0], c->qpns[1]) == 0);
	FUZZ_CHECK(honest_ask(SW_PEER_SET, c->qpns[1], c->qpns[0]) == 0);
	FUZZ_CHECK(honest_ask(SW_GROUP_JOIN, c->qpns[0], 0) == 0);
	FUZZ_CHECK(
		honest_command(RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create)) == 0);
	sa->sin_family = AF_INET;
	sa->sin_port = rte_cpu_to_be_16(HONEST_PORT);
	FUZZ_CHECK(honest_command(RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind)) == 0);
	FUZZ_CHECK(honest_command(RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen)) == 0);
}

/* ---- Begin and end ---- */

static void
limits_set(struct accounts *all, bool few_qps)
{
	const struct {
		enum account_kind kind;
		uint32_t capacity; /* a sixteenth is reserved for each user */
	} limits[] = {{ACCOUNT_connections, 32}, {ACCOUNT_clients, 16},
		{ACCOUNT_qps, few_qps ? 48 : 256}, {ACCOUNT_groups, 32},
		{ACCOUNT_group_members, 64}, {ACCOUNT_cm_ids, 128},
		{ACCOUNT_cm_ports, 64}, {ACCOUNT_cm_listeners, 32},
		{ACCOUNT_cm_connections, 96}, {ACCOUNT_cm_events, 128},
		{ACCOUNT_descriptors, 160}};

	for (unsigned i = 0; i < RTE_DIM(limits); i++)
		accounts_limit(all, limits[i].kind, limits[i].capacity, true);
}

void
world_open(bool takes_fds, bool few_qps)
{
	const int on = 1;

	memset(&world, 0, sizeof(world));
	world.now = NS_PER_SEC;
	rocade_daemon_log(ROCADE_LOG_ERROR);
	fixture_open(&world.b, (struct rocade_daemon_conf){.socket_mode = 0666,
				       .addresses = ADDRESS "/24",
				       .mtu = MTU,
				       .client_ring = RING,
				       .qpn_base = 0x1000,
				       .client_pairs = CLIENT_PAIRS,
				       .max_clients = 32});
	world.takes_fds = takes_fds || !world.b.d->passed.refused;
	if (takes_fds) {
		(void)setsockopt(
			world.b.d->listen.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
		world.b.d->passed.refused = false;
	}
	limits_set(&world.b.d->accounts, few_qps);
	client_init(&world.honest, UID_HONEST, PID_FIRST);
	/* Two processes of each hostile user: one with two connections, one with one. */
	for (unsigned i = 0; i < HOSTILES; i++)
		client_init(&world.hostile[i], UID_HOSTILE + i % HOSTILE_USERS,
			PID_FIRST + 1 + (int)(i % (HOSTILES - 2)));
	honest_open();
}

/* Returns whether the daemon has something to do without time passing. */
static bool
is_busy(void)
{
	const struct rocade_daemon *d = world.b.d;

	return !TAILQ_EMPTY(&d->conns) || world.connect_head != world.connect_tail ||
	       !TAILQ_EMPTY(&d->sw->ended);
}

/* The daemon handles the end of all connections, and everything in time wait ends. */
static void
end_await(void)
{
	struct rocade_daemon *d = world.b.d;

	for (unsigned i = 0; is_busy() || ucm_deadline(world.ucm) != TIME_NEVER; i++) {
		FUZZ_CHECK(i < 100000);
		if (is_busy())
			world_turn();
		else
			world_wait(RTE_MAX(ucm_deadline(world.ucm), world.now + 1) -
				   world.now);
	}
	ended_memory_free(&d->ended_memory);
	FUZZ_CHECK(cm_in_use(world.ucm->cm) == 0 && ucm_ids(world.ucm) == 0);
	FUZZ_CHECK(ucm_listeners(world.ucm) == 0);
	FUZZ_CHECK(fixture_closers_await(&world.b));
	FUZZ_CHECK(accounts_from(&d->accounts, 0) == NULL);
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		FUZZ_CHECK(d->accounts.limits[kind].used == 0);
	for (unsigned i = 0; i < SW_GROUPS; i++)
		FUZZ_CHECK(d->sw->groups[i].count == 0);
}

void
world_close(void)
{
	client_end(&world.honest);
	for (unsigned i = 0; i < HOSTILES; i++)
		client_end(&world.hostile[i]);
	end_await();
	fixture_close(&world.b);
}
