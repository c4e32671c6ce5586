/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade/cm.h: datagram services, client and server side. */
#include <rocade/cm.h>

#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_cm.h"

EXPORT int
rocade_cm_ud_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener)
{
	return cm_listener_open(cm, true, port, backlog, user, listener);
}

static int
ud_param_read(const struct rocade_cm_ud_param *param, size_t private_max,
	struct rocade_cm_ud_param *out)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (param != NULL)
		rc = conf_take(CONF_KIND(struct rocade_cm_ud_param, sgid_index), out,
			param, param->size);

	return rc == 0 ? cm_private_check(
				 out->private_data, out->private_len, private_max)
		       : rc;
}

EXPORT int
rocade_cm_ud_resolve(struct rocade_cm *cm, const union ibv_gid *peer, uint16_t port,
	const struct rocade_cm_ud_param *param, void *user, struct rocade_cm_id **out)
{
	struct rocade_cm_ud_param p;
	struct cm_request req;
	struct rocade_cm_id *id;
	int rc;

	if (arg_missing("cm", cm) || arg_missing("peer", peer) || arg_missing("id", out))
		return EINVAL;
	rc = ud_param_read(param, CMA_SIDR_PRIVATE, &p);
	if (rc == 0)
		rc = cm_request_begin(cm, peer, CMA_PS_UDP, port, p.sgid_index, &req);
	if (rc != 0)
		return rc;
	id = cm_id_new(cm, user);
	if (id == NULL)
		return ENOMEM;
	req.private = p.private_data;
	req.private_len = p.private_len;
	rc = cm_sidr_request(cm_port_lock(cm->port), &req, id, engine_clock(), &id->conn);
	cm_port_unlock(cm->port);
	if (rc != 0) {
		free(id);
		return rocade_fail(-rc, "cannot send the request: %s", strerror(-rc));
	}
	*out = id;
	return 0;
}

static int
ud_reply_send(struct rocade_cm_id *id, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const struct rocade_cm_ud_param *p)
{
	int rc;

	cm_port_lock(id->cm->port);
	rc = cm_sidr_reply(id->conn, status, qpn, qkey, p->private_data, p->private_len,
		engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "cannot answer: %s", strerror(-rc));
}

EXPORT int
rocade_cm_ud_answer(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_ud_param *param)
{
	struct ibv_qp_init_attr init;
	struct rocade_cm_ud_param p;
	struct ibv_qp_attr attr;
	int rc;

	if (arg_missing("id", id) || arg_missing("qp", qp))
		return EINVAL;
	rc = ud_param_read(param, mad_private_max(MAD_SIDR_REP), &p);
	if (rc != 0)
		return rc;
	if (!cm_has_qp(id->cm, qp) || qp->qp_type != IBV_QPT_UD)
		return rocade_fail(EINVAL, "the QP is not a UD QP of this device");
	rc = ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_QKEY, &init);
	if (rc != 0)
		return rocade_fail(rc, "cannot query the QP: %s", strerror(rc));
	/* The peer may send as soon as it knows the QP. */
	if (attr.qp_state < IBV_QPS_RTR || attr.qp_state > IBV_QPS_SQE)
		return rocade_fail(EINVAL, "the QP is not in RTR, RTS, SQD or SQE");
	return ud_reply_send(id, CM_SIDR_VALID, qp->qp_num, attr.qkey, &p);
}

EXPORT int
rocade_cm_ud_reject(
	struct rocade_cm_id *id, int status, const struct rocade_cm_ud_param *param)
{
	struct rocade_cm_ud_param p;
	int rc;

	if (arg_missing("id", id))
		return EINVAL;
	rc = ud_param_read(param, mad_private_max(MAD_SIDR_REP), &p);
	if (rc != 0)
		return rc;
	if (status < CM_SIDR_NO_SERVICE || status > CM_SIDR_NO_QP)
		return rocade_fail(
			EINVAL, "status: invalid value %d: expected 1 to 3", status);
	return ud_reply_send(id, (enum cm_sidr_status)status, 0, 0, &p);
}
