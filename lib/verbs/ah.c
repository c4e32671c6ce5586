/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3). A post copies the address,
 * so the application may destroy the handle when ibv_post_send() has returned. */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#include "port/net_addr.h"
#include "verbs/verbs_qp.h"
#include "verbs/forward.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

#define HOP_LIMIT_ANY 0xFF

static struct ibv_ah *
ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct qp_path path;
	struct verbs_ah *ah;
	int err;

	err = attr->port_num == 1 ? qp_path_read(to_ctx(pd->context)->dev, attr, &path)
				  : EINVAL;
	if (err != 0)
		return null_errno(refusal_note(err, "ibv_create_ah",
			refusal_of_path(to_ctx(pd->context)->dev, attr)));
	ah = alloc_get(&alloc_plain, "verbs_ah", sizeof(*ah));
	if (ah == NULL)
		return null_errno(ENOMEM);
	refusal_note(0, "ibv_create_ah", NULL);
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	memcpy(ah->dest.dgid, path.dgid, sizeof(ah->dest.dgid));
	ah->dest.flow_label = path.flow_label;
	ah->dest.tclass = path.tclass;
	ah->dest.hop_limit = path.hop_limit;
	ah->dest.sgid_index = path.sgid_index;
	ah->dest.sl = path.sl;
	pd_use(to_pd(pd));
	return &ah->ibv;
}

EXPORT struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_create_ah, pd, attr);
	return ah_create(pd, attr);
}

EXPORT int
ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!context_is_ours(ah->context))
		return forward(ENOSYS, ibv_destroy_ah, ah);
	pd_unuse(to_pd(ah->pd));
	alloc_put(&alloc_plain, ah, sizeof(struct verbs_ah));
	return 0;
}

/* Returns the GID index for a reply: that of the address to which the datagram from src was
 * sent, or of the source address towards src if it was sent to a multicast group; -1: there
 * is none. */
static int
gid_index_of(struct dev *dev, const uint8_t src[16], const uint8_t dst[16])
{
	int index;

	pthread_mutex_lock(&dev->lock);
	if (gid_is_multicast(dst))
		dst = net_source(net_conf(dev->net), src);
	index = dst != NULL ? gid_find(dev->gids, DEV_GIDS, dst) : -1;
	pthread_mutex_unlock(&dev->lock);
	return index;
}

/* Reads the two addresses from the 40 bytes before a datagram: an IPv6 header, or 20
 * bytes and an IPv4 header (annex A17.4.5). Returns false if they are neither. */
static bool
grh_read(const struct ibv_grh *grh, uint8_t src[16], uint8_t dst[16],
	struct ibv_global_route *route)
{
	const struct rte_ipv4_hdr *ip4 = (const struct rte_ipv4_hdr *)(grh + 1) - 1;
	uint32_t first = rte_be_to_cpu_32(grh->version_tclass_flow);

	if (first >> 28 == 6) {
		memcpy(src, grh->sgid.raw, 16);
		memcpy(dst, grh->dgid.raw, 16);
		route->flow_label = first & 0xFFFFF;
		route->traffic_class = (uint8_t)(first >> 20);
		return true;
	}
	if (ip4->version_ihl >> 4 != 4)
		return false;
	gid_from_ipv4(&ip4->src_addr, src);
	gid_from_ipv4(&ip4->dst_addr, dst);
	route->traffic_class = ip4->type_of_service;
	return true;
}

EXPORT int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr out = {.is_global = 1, .port_num = port_num};
	uint8_t dst[16];
	int index;

	if (!context_is_ours(context))
		return forward(-1, ibv_init_ah_from_wc, context, port_num, wc, grh, attr);
	if (to_ctx(context)->dev == NULL)
		return minus_errno(ENODEV);
	if (port_num != 1 || (wc->wc_flags & IBV_WC_GRH) == 0 ||
		!grh_read(grh, out.grh.dgid.raw, dst, &out.grh))
		return minus_errno(EINVAL);
	index = gid_index_of(to_ctx(context)->dev, out.grh.dgid.raw, dst);
	if (index < 0)
		return minus_errno(EINVAL);
	out.grh.sgid_index = (uint8_t)index;
	out.grh.hop_limit = HOP_LIMIT_ANY;
	*attr = out;
	return 0;
}

EXPORT struct ibv_ah *
ibv_create_ah_from_wc(
	struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_create_ah_from_wc, pd, wc, grh, port_num);
	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ah_create(pd, &attr);
}
