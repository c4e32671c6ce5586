/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's device as librdmacm sees it: another one after a restart of the daemon, and errors when a
 * descriptor cannot be made. */
#include "client_cm_fixture.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The index of the device that an ID at an address of this machine, and at this port, has. */
static uint32_t
device_of_id(int fd, uint16_t port)
{
	struct rdma_ucm_query_addr_resp resp = {.node_guid = 0};
	struct rdma_ucm_query query = {
		.response = (uintptr_t)&resp, .option = RDMA_USER_CM_QUERY_ADDR};
	struct sockaddr_in at = address("192.0.2.1", port);
	struct rdma_ucm_bind bind = {.addr_size = sizeof(at)};

	assert_int_equal(id_create(fd, 1, &bind.id), 0);
	memcpy(&bind.addr, &at, sizeof(at));
	assert_int_equal(command(fd, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0), 0);
	query.id = bind.id;
	assert_int_equal(
		command(fd, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(resp)),
		0);
	return resp.ibdev_index;
}

/* librdmacm knows a device by its structure and its index. The contexts that it has of the device of an
 * ended daemon are dead, so that of the next daemon is another device. */
TEST(device_of_the_next_daemon_is_another)
{
	struct ibv_device *device[2];
	struct ibv_context *context[3];
	struct client_fixture f;
	int fd;

	fixture_open(&f);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_device **list;

		daemon_begin(&f, NULL);
		for (unsigned again = 0; again < 2; again++) {
			list = ibv_get_device_list(NULL);
			assert_non_null(list);
			assert_true(again == 0 || device[i] == list[0]);
			device[i] = list[0];
			assert_null(list[1]);
			ibv_free_device_list(list);
		}
		context[i] = ibv_open_device(device[i]);
		assert_non_null(context[i]);
		fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
		assert_int_equal(device_of_id(fd, 7175), ibv_get_device_index(device[i]));
		close(fd);
		if (i == 0)
			daemon_end(&f);
	}
	assert_ptr_not_equal(device[0], device[1]);
	assert_int_not_equal(
		ibv_get_device_index(device[0]), ibv_get_device_index(device[1]));
	/* A program may keep the pointer, and reaches the daemon that there is. */
	assert_ptr_equal(context[0]->device, device[0]);
	context[2] = ibv_open_device(device[0]);
	assert_non_null(context[2]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ibv_close_device(context[i]), 0);
	fixture_close(&f);
}

/* Uses the device of this process, which is not the parent's. */
static int
child_device_check(void *arg)
{
	const struct ibv_device *parents = arg;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);

	CHILD_CHECK(list != NULL && list[0] != NULL && list[1] == NULL && fd >= 0);
	CHILD_CHECK(list[0] != parents);
	CHILD_CHECK(ibv_get_device_index(list[0]) !=
		    ibv_get_device_index((struct ibv_device *)(uintptr_t)parents));
	CHILD_CHECK(device_of_id(fd, 7176) == (uint32_t)ibv_get_device_index(list[0]));
	context = ibv_open_device(list[0]);
	CHILD_CHECK(context != NULL);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	CHILD_CHECK(pd != NULL && cq != NULL);
	qp = ibv_create_qp(
		pd, &(struct ibv_qp_init_attr){
			    .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC});
	CHILD_CHECK(qp != NULL);
	CHILD_CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 &&
		    ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	ibv_free_device_list(list);
	close(fd);
	return 0;
}

/* As behind a restart of the daemon: the contexts that librdmacm has of the parent's device are dead. */
TEST(device_of_a_child_is_another)
{
	struct ibv_context *context;
	struct ibv_device **list;
	struct client_fixture f;
	int fd;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	assert_int_equal(device_of_id(fd, 7177), ibv_get_device_index(list[0]));
	check_in_child(&f, child_device_check, list[0]);
	assert_int_equal(device_of_id(fd, 7178), ibv_get_device_index(list[0]));
	close(fd);
	assert_int_equal(ibv_close_device(context), 0);
	ibv_free_device_list(list);
	fixture_close(&f);
}

/* Whatever fails first with this limit, the errno value says why. */
static int
few_descriptors_check(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	struct rlimit limit;
	rlim_t last;
	int fd = dup(0);

	(void)arg;
	CHILD_CHECK(list != NULL && list[0] != NULL && fd >= 0);
	CHILD_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(fd);
	last = (rlim_t)fd + 40;
	for (limit.rlim_cur = (rlim_t)fd; context == NULL; limit.rlim_cur++) {
		CHILD_CHECK(limit.rlim_cur < last);
		CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		context = ibv_open_device(list[0]);
		CHILD_CHECK(context != NULL || errno == EMFILE);
	}
	for (fd = -1; fd < 0; limit.rlim_cur++) {
		CHILD_CHECK(limit.rlim_cur < last);
		fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
		CHILD_CHECK(fd >= 0 || errno == EMFILE);
		CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	}
	close(fd);
	CHILD_CHECK(ibv_close_device(context) == 0);
	ibv_free_device_list(list);
	return 0;
}

TEST(few_descriptors_are_emfile)
{
	struct client_fixture f;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	check_in_child(&f, few_descriptors_check, NULL);
	fixture_close(&f);
}

/* Without a device of the host, too, a program learns why the daemon's is missing. */
TEST(list_fails_with_the_errno_of_the_refusal)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct client_fixture f;
	struct ibv_device **list;
	int fds[3], n = -1;

	fixture_open(&f);
	daemon_begin(&f, &(struct rocade_daemon_conf){.max_clients = 1});
	strcpy(at.sun_path, f.path);
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
	errno = 0;
	list = ibv_get_device_list(&n);
	/* Where the host has devices, they are listed. */
	assert_true(list != NULL || (errno == ENOSPC && n == 0));
	if (list != NULL)
		ibv_free_device_list(list);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
	daemon_end(&f);
	fixture_close(&f);
}
