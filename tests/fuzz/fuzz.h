/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target is one function, which libFuzzer calls with whatever it comes up with,
 * and which aborts when something does not hold. With clang and -fsanitize=fuzzer it is a
 * fuzzer; linked with replay.c it runs every file of its corpus once, with any compiler.
 */
#ifndef VIV_TESTS_FUZZ_H
#define VIV_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#endif
