/* SPDX-License-Identifier: MIT */
#include "executor/launcher/unshared_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

void *unshared_alloc(size_t size) {
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || madvise(memory, size, MADV_WIPEONFORK))
        abort();
    return memory;
}

void unshared_free(void *memory, size_t size) { munmap(memory, size); }
