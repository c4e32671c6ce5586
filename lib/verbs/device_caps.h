/* SPDX-License-Identifier: BSD-3-Clause */
/* What each device of Rocade can do (ibv_query_device(3), ibv_query_device_ex(3)). */
#ifndef ROCADE_VERBS_DEVICE_CAPS_H
#define ROCADE_VERBS_DEVICE_CAPS_H

#include <rocade/flush.h>

/* device_cap_flags. The last line: the part of the memory management extensions that verbs use, SEND with
 * invalidate and local invalidate. */
#define DEVICE_CAPS                                                                      \
	(IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |                      \
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |     \
		IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |                    \
		IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_PORT_ACTIVE_EVENT |           \
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |                  \
		IBV_DEVICE_MEM_MGT_EXTENSIONS)

/* IB_UVERBS_DEVICE_ATOMIC_WRITE of newer headers. */
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)
/* device_cap_flags_ex. IB_UVERBS_DEVICE_FLUSH_PERSISTENT (bit 39) is missing: no region has
 * IBV_ACCESS_FLUSH_PERSISTENT. */
#define DEVICE_CAPS_EX (DEVICE_CAPS | ROCADE_DEVICE_FLUSH_GLOBAL | DEVICE_ATOMIC_WRITE)

#endif
