/* SPDX-License-Identifier: MIT */
/* For cppcheck without any header: the macros that shape code, and what the build
 * defines. */
#define TAILQ_HEAD(name, type)                                                           \
    struct name {                                                                        \
        struct type *first, **last;                                                      \
    }
#define TAILQ_ENTRY(type)                                                                \
    struct {                                                                             \
        struct type *next, **previous;                                                   \
    }
#define TAILQ_FOREACH(one, list, field)                                                  \
    for (one = (list)->first; one; one = one->field.next)
#define VIVARIUM_CONF                           ""
#define PACKAGE_VERSION                         ""
#define VIVARIUM_SECCOMP_PROFILE                ""
#define json_object_foreach(object, key, value) for (;;)
#define LIST_FOREACH(one, list, field)                                                   \
    for (one = (list)->first; one; one = one->field.next)
