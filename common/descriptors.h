/* SPDX-License-Identifier: MIT */
/* How many descriptors this process may have. */
#ifndef VIV_DESCRIPTORS_H
#define VIV_DESCRIPTORS_H

/* Raises the soft limit to the hard one, for a service whose descriptors are those of its
 * sessions and connections. A limit that cannot be raised stays. Before the first
 * thread; children inherit it. */
void descriptors_raise_limit(void);

/* A descriptor of nothing, to be closed when there is no other one for what must be
 * opened; -1 where there is none. The caller's. */
int descriptors_spare(void);

#endif
