/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on files: those that are named, or its corpus, the folder with the
 * name of the program in tests/fuzz/corpus of the source folder, which make says in
 * `srcdir`. Tells its outcome in the Test Anything Protocol; an input that does not hold
 * aborts.
 */
#include <dirent.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "tests/fuzz/fuzz.h"

static void run_file(const char *path) {
    CLEANUP(close_file) FILE *file = fopen(path, "rb");
    CLEANUP(buffer_clear) struct buffer bytes = {0};
    char block[4096];
    size_t got;

    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    do {
        got = fread(block, 1, sizeof block, file);
        buffer_append(&bytes, block, got, SIZE_MAX, NULL);
    } while (got == sizeof block);
    /* A copy of its exact size, so that a sanitizer sees a byte too far. */
    CLEANUP(free_ptr) uint8_t *copy = viv_xmalloc(bytes.size);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    fprintf(stderr, "# %s\n", path);
    LLVMFuzzerTestOneInput(copy, bytes.size);
}

static int run_folder(const char *path) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;

    if (!folder)
        return 0;
    while ((entry = readdir(folder))) {
        char name[1024];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        run_file(name);
        count++;
    }
    closedir(folder);
    return count;
}

int main(int argument_count, char **arguments) {
    const char *source = getenv("srcdir");
    const char *slash = strrchr(arguments[0], '/');
    char path[512];
    int count = argument_count - 1;

    for (int i = 1; i < argument_count; i++)
        run_file(arguments[i]);
    if (count == 0) {
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", source ? source : ".",
                 slash ? slash + 1 : arguments[0]);
        count = run_folder(path);
    }
    printf("1..1\n%s 1 - %d inputs\n", count > 0 ? "ok" : "not ok", count);
    return count > 0 ? 0 : 1;
}
