/* SPDX-License-Identifier: BSD-3-Clause */
/* Enhanced connection establishment (ECE): the options of a program's QP travel in the
 * commands and events of rdma_cm, as librdmacm sends and reads them. */
#include "ucm_fixture.h"

#include <rdma/rdma_cma_abi.h>

#include "wire/extensions.h"

#define OTHER_VENDOR 0x15b3u

/* librdmacm has structures of its own for the commands of the kernel. */
static_assert(offsetof(struct ucma_abi_connect, ece) -
			      offsetof(struct ucma_abi_connect, conn_param) ==
		      offsetof(struct rdma_ucm_connect, ece),
	"behind the header of a command");
static_assert(
	offsetof(struct ucma_abi_accept, ece) - offsetof(struct ucma_abi_accept, uid) ==
		offsetof(struct rdma_ucm_accept, ece),
	"behind the header of a command");
static_assert(
	offsetof(struct ucma_abi_event_resp, ece) ==
			offsetof(struct rdma_ucm_event_resp, ece) &&
		sizeof(struct ucma_abi_event_resp) <= sizeof(struct rdma_ucm_event_resp),
	"librdmacm asks for as many bytes as it knows");

static const struct rdma_ucm_ece none;
static const struct rdma_ucm_ece large = {.vendor_id = 1u << 24};

static uint32_t
routed_to_listener(uint16_t ps)
{
	make_listener(ps);
	return make_routed_id(ps);
}

static int
connect_with(uint32_t id, struct rdma_ucm_ece ece)
{
	struct rdma_ucm_connect cmd = {
		.id = id, .conn_param = {.qp_num = CLIENT_QPN, .valid = 1}, .ece = ece};

	return COMMAND(&ctx.client, CONNECT, &cmd, NULL);
}

static int
accept_with(uint32_t id, struct rdma_ucm_ece ece)
{
	struct rdma_ucm_accept cmd = {.id = id,
		.uid = 0x2000,
		.conn_param = {.qp_num = SERVER_QPN, .valid = 1},
		.ece = ece};

	return COMMAND(&ctx.server, ACCEPT, &cmd, NULL);
}

static void
expect_ece(const struct rdma_ucm_event_resp *event, uint32_t vendor_id, uint32_t options)
{
	assert_int_equal(event->ece.vendor_id, vendor_id);
	assert_int_equal(event->ece.attr_mod, options);
}

static struct rdma_ucm_ece
sack(void)
{
	return (struct rdma_ucm_ece){
		.vendor_id = EXT_VENDOR_ID, .attr_mod = ext_options(EXT_SACK)};
}

/* The steps of librdmacm at both ends of a connection, with QPs of Rocade: the active end
 * sends what its QP can use (ibv_query_ece), the passive end gives that to its QP
 * (ibv_set_ece), answers with the vendor ID of the request and what its QP has taken, and
 * the active end gives that to its QP. */
TEST_WITH(two_programs_agree, ucm_setup, ucm_teardown)
{
	uint32_t active = routed_to_listener(RDMA_PS_TCP), passive;
	struct rdma_ucm_event_resp event;
	struct rdma_ucm_ece answer;

	assert_int_equal(connect_with(active, sack()), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_ece(&event, EXT_VENDOR_ID, ext_options(EXT_SACK));
	passive = event.id;
	answer = (struct rdma_ucm_ece){.vendor_id = event.ece.vendor_id,
		.attr_mod =
			ext_options(ext_common(event.ece.vendor_id, event.ece.attr_mod))};
	assert_int_equal(accept_with(passive, answer), 0);
	event = expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	expect_ece(&event, EXT_VENDOR_ID, ext_options(EXT_SACK));
	assert_int_equal(ext_common(event.ece.vendor_id, event.ece.attr_mod), EXT_SACK);
	/* The command by which the active end confirms has no parameters. */
	assert_int_equal(accept_id(&ctx.client, active, 0, 0), 0);
	event = expect_event(&ctx.server, UCM_EVENT_ESTABLISHED);
	expect_ece(&event, 0, 0);
	assert_int_equal(disconnect_id(&ctx.client, active), 0);
	event = expect_event(&ctx.server, UCM_EVENT_DISCONNECTED);
	expect_ece(&event, 0, 0);
}

/* Options of another vendor pass unchanged: they are the programs' business. */
TEST_WITH(options_pass_unchanged, ucm_setup, ucm_teardown)
{
	uint32_t active = routed_to_listener(RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(connect_with(active, (struct rdma_ucm_ece){.vendor_id = 0xffffff,
						      .attr_mod = ~0u}),
		0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_ece(&event, 0xffffff, ~0u);
	assert_int_equal(
		accept_with(event.id,
			(struct rdma_ucm_ece){.vendor_id = OTHER_VENDOR, .attr_mod = 3}),
		0);
	event = expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	expect_ece(&event, OTHER_VENDOR, 3);
}

/* Commands of a library that knows no ECE end before it. */
TEST_WITH(older_library_has_no_options, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_connect connect = {
		.conn_param = {.qp_num = CLIENT_QPN, .valid = 1}, .ece = sack()};
	struct rdma_ucm_accept accept = {
		.conn_param = {.qp_num = SERVER_QPN, .valid = 1}, .ece = sack()};
	struct rdma_ucm_event_resp event;

	connect.id = routed_to_listener(RDMA_PS_TCP);
	assert_int_equal(command_run(&ctx.client, RDMA_USER_CM_CMD_CONNECT, &connect,
				 offsetof(struct rdma_ucm_connect, ece), NULL),
		0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_ece(&event, 0, 0);
	accept.id = event.id;
	assert_int_equal(command_run(&ctx.server, RDMA_USER_CM_CMD_ACCEPT, &accept,
				 offsetof(struct rdma_ucm_accept, ece), NULL),
		0);
	event = expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	expect_ece(&event, 0, 0);
}

/* A vendor ID of more than 24 bits fits in no message. The client's ID can be used afterwards, and the
 * server's request is rejected. */
TEST_WITH(large_vendor_id_is_refused, ucm_setup, ucm_teardown)
{
	uint32_t active = routed_to_listener(RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(connect_with(active, large), -EINVAL);
	assert_int_equal(connect_with(active, none), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	assert_int_equal(accept_with(event.id, large), -EINVAL);
	expect_event(&ctx.client, UCM_EVENT_REJECTED);
}

/* rdma_reject_ece(3) */
TEST_WITH(options_are_rejected, ucm_setup, ucm_teardown)
{
	uint32_t active = routed_to_listener(RDMA_PS_TCP);
	struct rdma_ucm_reject reject = {.reason = CM_REJ_VENDOR_OPTION};
	struct rdma_ucm_event_resp event;

	assert_int_equal(connect_with(active, sack()), 0);
	reject.id = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(COMMAND(&ctx.server, REJECT, &reject, NULL), 0);
	event = expect_event(&ctx.client, UCM_EVENT_REJECTED);
	assert_int_equal(event.status, 35);
	expect_ece(&event, 0, 0);
}

/* A request to a port that has no listener yet keeps them. Bad ones are refused at once. */
TEST_WITH(deferred_request_keeps_its_options, ucm_setup, ucm_teardown)
{
	uint32_t server = make_id(&ctx.server, RDMA_PS_TCP), active;
	struct rdma_ucm_event_resp event;

	assert_int_equal(bind_id(&ctx.server, server, NULL, LISTEN_PORT), 0);
	active = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(connect_with(active, large), -EINVAL);
	assert_int_equal(connect_with(active, sack()), 0);
	expect_no_event(&ctx.server);
	assert_int_equal(listen_id(&ctx.server, server, 4), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_ece(&event, EXT_VENDOR_ID, ext_options(EXT_SACK));
}

/* Resolution of a datagram service has no options: UD QPs have none. */
TEST_WITH(datagrams_have_no_options, ucm_setup, ucm_teardown)
{
	uint32_t active = routed_to_listener(RDMA_PS_UDP);
	struct rdma_ucm_event_resp event;

	assert_int_equal(connect_with(active, sack()), 0);
	event = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
	expect_ece(&event, 0, 0);
	assert_int_equal(accept_with(event.id, sack()), 0);
	event = expect_event(&ctx.client, UCM_EVENT_ESTABLISHED);
	expect_ece(&event, 0, 0);
}

static int
remote_setup(void **state)
{
	fixture_open(true);
	return 0;
}

/* To another host the options leave in a REQ. */
TEST_WITH(request_leaves_with_options, remote_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct cm_ece ece;

	assert_int_equal(resolve_addr(&ctx.client, id, "192.0.2.9", LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_with(id, sack()), 0);
	assert_int_equal(ctx.sent_count, 1);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REQ);
	ece = mad_get_ece(&ctx.sent);
	assert_int_equal(ece.vendor_id, EXT_VENDOR_ID);
	assert_int_equal(ece.options, ext_options(EXT_SACK));
}
