/* SPDX-License-Identifier: MIT */
/*
 * Memory that a forked child does not get: there it reads as zeros. For what the
 * launcher knows of sessions, since every supervisor is a fork of it, and one that was
 * taken over must not find the ids of other sessions in its memory.
 */
#ifndef VIV_UNSHARED_MEMORY_H
#define VIV_UNSHARED_MEMORY_H

#include <stddef.h>

/* Zeroed, and in pages of its own. Aborts when there is none. */
void *unshared_alloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));

void unshared_free(void *memory, size_t size);

#endif
