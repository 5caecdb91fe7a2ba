/* SPDX-License-Identifier: MIT */
/*
 * The root filesystem of every session, made once: a mount namespace with a small
 * read-only root that holds Python, its libraries and their data, and nothing else of the
 * host. The launcher lives in it; a session's mount namespace is a copy of it, in which
 * the kernel locks all mounts (mount_namespaces(7)), with writable file systems of its
 * own put on top.
 */
#ifndef VIV_TEMPLATE_ROOT_H
#define VIV_TEMPLATE_ROOT_H

#include "common/error.h"

/* Makes the root and moves the calling process into it, which has its own mount namespace
 * and CAP_SYS_ADMIN there. Open descriptors of the old root stay usable. */
int template_root_enter(struct viv_error *err);

#endif
