/* SPDX-License-Identifier: MIT */
/*
 * What a process gives up for ever: capabilities, new privileges, resources, inherited
 * descriptors. Each function changes the calling process, which has one thread. A failure
 * means that the process is not confined; its caller must end it.
 */
#ifndef VIV_CONFINE_H
#define VIV_CONFINE_H

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* AddressSanitizer reserves terabytes of address space, which no limit would leave it. */
#define CONFINE_LIMITS_ADDRESS_SPACE 1
#if defined(__SANITIZE_ADDRESS__)
#undef CONFINE_LIMITS_ADDRESS_SPACE
#define CONFINE_LIMITS_ADDRESS_SPACE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef CONFINE_LIMITS_ADDRESS_SPACE
#define CONFINE_LIMITS_ADDRESS_SPACE 0
#endif
#endif

/* Becomes the user `own` in all respects but for what it does to files and to processes:
 * that it does as `acting`, which may be the same user. A process of the user `acting`
 * cannot signal one whose own user is another: kill(2). The group becomes that of
 * `acting`. Capabilities stay. */
int confine_become_user(uid_t own, uid_t acting, struct viv_error *err);

/* Drops every capability of all sets but those in the mask `kept` (bits 1 << CAP_...),
 * which stay effective and permitted; locks the secure bits. It takes CAP_SETPCAP; a
 * process that never had any capability has nothing to drop but
 * confine_to_capabilities().
 */
int confine_capabilities(uint64_t kept, struct viv_error *err);

/* Drops every capability but those in the mask `kept` from the effective, permitted and
 * inheritable sets. Enough for a process that is ours; one that runs the code of a user
 * gives up the rest by confine_capabilities(). */
int confine_to_capabilities(uint64_t kept, struct viv_error *err);

/* The permitted set: what confine_to_capabilities() can keep. A container's root may have
 * been given less than a host's. */
uint64_t confine_held_capabilities(void);

/* Sets no_new_privs, makes the process not dumpable, so that no process of its user may
 * trace it or read its memory, and checks both. */
int confine_privileges(struct viv_error *err);

/* The limits of a worker. `address_space` and `file_size` in bytes; a build with
 * AddressSanitizer does not limit the first. */
int confine_resources(uint64_t address_space, uint64_t file_size, uint64_t threads,
                      struct viv_error *err);

/* The folder becomes the root, and the current folder. It takes CAP_SYS_CHROOT. */
int confine_root(int folder, struct viv_error *err);

/* Closes every descriptor from `first` on. */
int confine_descriptors(unsigned first, struct viv_error *err);

#endif
