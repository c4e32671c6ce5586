/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_advise_mr(3), and whether regions may be on demand. */
#include "engine/mr_fault.h"
#include "verbs/context_ops.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

bool
on_demand_supported(const struct dev *dev)
{
	return dev->conf.mr_fault_handler && mr_fault_installed();
}

static int
advice_check(const struct dev *dev, enum ibv_advise_mr_advice advice, uint32_t flags,
	uint32_t num_sge)
{
	if (!on_demand_supported(dev) ||
		(advice != IBV_ADVISE_MR_ADVICE_PREFETCH &&
			advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
			advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT))
		return EOPNOTSUPP;
	return (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) != 0 || num_sge == 0 ? EINVAL
										  : 0;
}

/* A page that is present for this process is so for its engines, too: PREFETCH_NO_FAULT has nothing
 * to do. Without IBV_ADVISE_MR_FLAG_FLUSH the call may end earlier, and does not. */
static int
advice_take(const struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
	const struct ibv_sge *sge, bool execute)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uintptr_t host;
	int err = -key_on_demand(&to_ctx(pd->context)->dev->keys, sge->lkey,
		((const struct verbs_pd *)pd)->number, sge->addr, sge->length, write,
		&host);

	if (err != 0 || !execute || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return err;
	return pages_fault_in((void *)host, sge->length, write);
}

int
verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *list, uint32_t num_sge)
{
	int err = advice_check(to_ctx(pd->context)->dev, advice, flags, num_sge);

	/* All are checked before the first page is faulted in. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < num_sge && err == 0; i++)
			err = advice_take(pd, advice, &list[i], pass == 1);
	}
	return refusal_note(err, "ibv_advise_mr",
		"the flags are 0 or IBV_ADVISE_MR_FLAG_FLUSH, there is an SGE, and its lkey is "
		"not that of a memory window");
}
