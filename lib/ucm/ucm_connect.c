/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that establish and end connections. */
#include <errno.h>
#include <string.h>

#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_fault.h"
#include "ucm/ucm_request.h"

#define BACKLOG_MAX 1024
#define RETRIES_MAX 7 /* what the 3 bits of a REQ or REP hold */

/* Returns -ENODEV if the device of the ID was removed, -EINVAL if the QP belongs to another
 * process, or for a vendor ID that no message can carry. Larger retry counts stand for
 * RETRIES_MAX, as with Linux. Without ECE, as from a library of before 2020, ece is zero. */
static int
qp_read(const struct ucm_call *call, struct ucm_id *id,
	const struct rdma_ucm_conn_param *p, const struct rdma_ucm_ece *ece)
{
	const struct ucm_conf *conf = &call->ucm->conf;

	if (id->device == NULL)
		return -ENODEV; /* its address was removed */
	if (!conf->ops.owns_qpn(call->session->owner, p->qp_num))
		return -EINVAL;
	if (ece->vendor_id > CM_VENDOR_ID_MAX)
		return -EINVAL;
	id->local = (struct cm_qp){
		.qpn = p->qp_num,
		.psn = id->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.rnr_retry = RTE_MIN(p->rnr_retry_count, RETRIES_MAX),
		.srq = p->srq != 0,
		.flow_control = p->flow_control != 0,
		.ece = {.vendor_id = ece->vendor_id, .options = ece->attr_mod},
		.retry_count = RTE_MIN(p->retry_count, RETRIES_MAX),
		.ca_guid = id->device->conf.guid,
		.path_mtu = id->device->conf.path_mtu,
		.transport = ucm_id_transport(id),
	};
	return 0;
}

/* As if the request had been sent, and this had come of it. */
static int
request_fail(struct ucm *ucm, struct ucm_id *id, enum ucm_event_type type, int status)
{
	struct ucm_event *event = ucm_event_new(id, type, status);

	if (event == NULL)
		return -ENOMEM;
	id->conn_ended = true;
	cm_count_fault(ucm->cm);
	ucm_event_put(event);
	return 0;
}

/* Sends the request, or has it fail as a rule says. */
static int
request_make(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	if (ucm_fault_take(id, UCM_FAULT_UNREACHABLE))
		return request_fail(ucm, id, UCM_EVENT_UNREACHABLE, -ETIMEDOUT);
	if (ucm_fault_take(id, UCM_FAULT_REJECTED))
		return request_fail(ucm, id, UCM_EVENT_REJECTED, (int)id->fault.value);
	return ucm_request_send(ucm, id, now);
}

int
ucm_do_connect(struct ucm_call *call)
{
	const struct rdma_ucm_connect *cmd = call->in;
	const struct rdma_ucm_conn_param *p = &cmd->conn_param;
	struct ucm_id *id = ucm_id_find(call, cmd->id);
	int rc = 0;

	if (id == NULL)
		return -ENOENT;
	if (id->removed)
		return -ENODEV;
	if (id->state != UCM_ROUTE)
		return -EINVAL;
	if (p->private_data_len > (ucm_id_is_ud(id) ? CMA_SIDR_PRIVATE : CMA_REQ_PRIVATE))
		return -EINVAL;
	if (!ucm_id_is_ud(id))
		rc = qp_read(call, id, p, &cmd->ece);
	if (rc != 0)
		return rc;
	memcpy(id->private, p->private_data, p->private_data_len);
	id->private_len = p->private_data_len;
	rc = request_make(call->ucm, id, call->now);
	if (rc != 0)
		return rc;
	id->path_mtu = id->local.path_mtu;
	id->state = UCM_CONNECT;
	return 0;
}

static const uint8_t any_ipv4[16] = {[10] = 0xff, 0xff}, any_ipv6[16];

/* Returns the address in the form of cm_listen(). */
static const uint8_t *
listen_addr(const struct ucm_id *id)
{
	if (!id->src.any)
		return id->src.gid;
	if (!id->afonly)
		return NULL;
	return id->src.sa.sin6_family == AF_INET ? any_ipv4 : any_ipv6;
}

/* An ID that is not bound listens at all IPv4 addresses, as with the kernel. */
static int
bind_any(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	struct ucm_addr any;
	int rc;

	ucm_addr_make(&any, any_ipv4, 0);
	any.any = true;
	memset(any.gid, 0, sizeof(any.gid));
	rc = ucm_bind(ucm, id, &any, now);
	if (rc == 0)
		id->state = UCM_BOUND;
	return rc;
}

int
ucm_do_listen(struct ucm_call *call)
{
	const struct rdma_ucm_listen *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);
	struct account *account = call->session->account;
	uint32_t backlog = cmd->backlog;
	int rc = 0;

	if (id == NULL)
		return -ENOENT;
	if (id->removed)
		return -ENODEV;
	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return -EINVAL;
	if (id->state == UCM_IDLE)
		rc = bind_any(call->ucm, id, call->now);
	if (rc == 0)
		rc = ucm_listen_check(call->ucm, id);
	if (rc != 0)
		return rc;
	if (!account_take(account, ACCOUNT_cm_listeners, 1))
		return -ENOMEM;
	if (backlog == 0 || backlog > BACKLOG_MAX)
		backlog = BACKLOG_MAX;
	rc = (ucm_id_is_ud(id) ? cm_sidr_listen : cm_listen)(call->ucm->cm,
		ucm_service_id(id->ps, id->port), listen_addr(id), backlog, id,
		&id->listener);
	if (rc != 0) {
		account_give(account, ACCOUNT_cm_listeners, 1);
		return rc == -ENOSPC ? -ENOMEM : rc;
	}
	id->state = UCM_LISTEN;
	ucm_request_on_listen(call->ucm, id, call->now);
	return 0;
}

/* Passive side: sends the REP or SIDR_REP. */
static int
passive_accept(
	struct ucm_call *call, struct ucm_id *id, const struct rdma_ucm_accept *cmd)
{
	const struct rdma_ucm_conn_param *p = &cmd->conn_param;
	int rc;

	if (ucm_id_is_ud(id)) {
		if (!call->ucm->conf.ops.owns_qpn(call->session->owner, p->qp_num))
			return -EINVAL;
		rc = cm_sidr_reply(id->conn, CM_SIDR_VALID, p->qp_num,
			p->qkey != 0 ? p->qkey : UCM_QKEY, p->private_data,
			p->private_data_len, call->now);
	} else {
		rc = qp_read(call, id, p, &cmd->ece);
		if (rc == 0)
			rc = cm_accept(id->conn, &id->local, p->private_data,
				p->private_data_len, call->now);
	}
	if (rc != 0)
		return rc;
	ucm_fault_lose(id, UCM_FAULT_LOSE_REP, MAD_REP);
	id->uid = cmd->uid;
	id->uid_set = true;
	return 0;
}

/* Returns 0 if the ID has a request that can be accepted or rejected. */
static int
undecided_check(const struct ucm_id *id)
{
	if (id->state != UCM_CONNECT || !ucm_id_has_conn(id))
		return -EINVAL;
	return id->conn != NULL ? 0 : -ENOTCONN;
}

/* Of a request that was answered by a REJ or SIDR_REP, or has ended before, nothing comes any
 * more: the ID, which may live on for long, does not keep its connection. */
static void
decided_release(struct ucm_id *id, uint64_t now)
{
	if (cm_has_ended(id->conn))
		ucm_id_release_conn(id, now);
}

/* As with Linux, a request that was to be accepted, and could not be, is rejected: the peer does not wait
 * for a program that takes its failure for the end. */
static void
accept_failed(struct ucm_id *id, uint64_t now)
{
	if (ucm_id_is_ud(id))
		(void)cm_sidr_reply(id->conn, CM_SIDR_REJECTED, 0, 0, NULL, 0, now);
	else
		(void)cm_reject(id->conn, CM_REJ_CONSUMER, NULL, 0, now);
}

/* Sends the RTU. */
static int
active_confirm(struct ucm_id *id, uint64_t now)
{
	int rc = cm_confirm(id->conn, NULL, 0, now);

	if (rc == 0)
		ucm_fault_lose(id, UCM_FAULT_LOSE_RTU, MAD_RTU);
	return rc;
}

/* A command without parameters comes from the active side: its QP is ready, and the RTU
 * is sent. */
int
ucm_do_accept(struct ucm_call *call)
{
	const struct rdma_ucm_accept *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);
	int rc;

	if (id == NULL)
		return -ENOENT;
	rc = undecided_check(id);
	if (rc != 0)
		return rc;
	rc = cmd->conn_param.valid ? passive_accept(call, id, cmd)
				   : active_confirm(id, call->now);
	if (rc == 0)
		id->state = UCM_ACCEPTED;
	else
		accept_failed(id, call->now);
	decided_release(id, call->now);
	return rc;
}

/* Older libraries leave the reason 0. As with Linux, programs give no reason that is the
 * connection manager's. */
int
ucm_do_reject(struct ucm_call *call)
{
	const struct rdma_ucm_reject *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);
	enum cm_reason reason = cmd->reason != 0 ? cmd->reason : CM_REJ_CONSUMER;
	int rc;

	if (reason != CM_REJ_CONSUMER && reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	if (id == NULL)
		return -ENOENT;
	rc = undecided_check(id);
	if (rc != 0)
		return rc;
	if (ucm_id_is_ud(id))
		rc = cm_sidr_reply(id->conn, CM_SIDR_REJECTED, 0, 0, cmd->private_data,
			cmd->private_data_len, call->now);
	else
		rc = cm_reject(id->conn, reason, cmd->private_data, cmd->private_data_len,
			call->now);
	decided_release(id, call->now);
	return rc;
}

int
ucm_do_disconnect(struct ucm_call *call)
{
	const struct rdma_ucm_disconnect *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	if (!ucm_id_has_conn(id) || ucm_id_is_ud(id))
		return -EINVAL;
	id->disconnects = true;
	/* No error: the peer may have disconnected first. */
	if (id->conn == NULL)
		return 0;
	(void)cm_disconnect(id->conn, NULL, 0, call->now);
	ucm_fault_lose(id, UCM_FAULT_LOSE_DREQ, MAD_DREQ);
	return 0;
}

/* The program reports an asynchronous event of its QP. */
int
ucm_do_notify(struct ucm_call *call)
{
	const struct rdma_ucm_notify *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	if (!ucm_id_has_conn(id))
		return -EINVAL;
	if (cmd->event == IBV_EVENT_COMM_EST && id->conn != NULL)
		(void)cm_established(id->conn, call->now);
	return 0;
}
