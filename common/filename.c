/* SPDX-License-Identifier: MIT */
/* The rules for names of files, in one place for both directions. */
#include "common/filename.h"

#include <string.h>

#include "common/utf8.h"

static const char *component_refusal(const char *text, size_t size) {
    if (size == 0)
        return "a component is empty";
    if (size > FILENAME_COMPONENT_MAX)
        return "a component is longer than 255 bytes";
    if ((size == 1 && text[0] == '.') || (size == 2 && memcmp(text, "..", 2) == 0))
        return "a component is \".\" or \"..\"";
    return NULL;
}

const char *filename_refusal(struct slice name) {
    size_t start = 0;
    int depth = 0;

    if (name.size == 0)
        return "it is empty";
    if (name.data[0] == '/')
        return "it is not relative";
    if (!utf8_valid(name.data, name.size))
        return "it is not UTF-8";
    if (utf8_has_control(name.data, name.size))
        return "it has a control character";
    if (memchr(name.data, '\\', name.size))
        return "it has a backslash";
    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != '/')
            continue;
        const char *refusal = component_refusal(name.data + start, i - start);
        if (refusal)
            return refusal;
        if (++depth > FILENAME_DEPTH_MAX)
            return "it has more than 8 components";
        start = i + 1;
    }
    return NULL;
}

bool filename_is_folder_of(struct slice folder, struct slice name) {
    return name.size > folder.size && name.data[folder.size] == '/' &&
           memcmp(folder.data, name.data, folder.size) == 0;
}
