/* SPDX-License-Identifier: MIT */
#include "executor/launcher/slot_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "executor/launcher/janitor.h"
#include "executor/launcher/slot_ids.h"
#include "executor/launcher/slot_tree.h"
#include "executor/launcher/wipe.h"

#define ZYGOTE        "zygote"
#define RANDOM_BYTES  16
#define RANDOM_DIGITS (2 * RANDOM_BYTES)
#define NAME_SIZE     64
#define FOLDER        (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int slot_folders_make(const char *path) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (mkdir(path, S_IRWXU) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT || !slash || slash == path)
        return -1;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return mkdir(parent, 0755) || mkdir(path, S_IRWXU) ? -1 : 0;
}

static void name_slot(char name[NAME_SIZE], uint32_t slot) {
    if (slot == JANITOR_ZYGOTE)
        snprintf(name, NAME_SIZE, ZYGOTE);
    else
        snprintf(name, NAME_SIZE, "%u", slot);
}

/* The length of the slot's name at the front of `name`, 0 if there is none. */
static size_t slot_prefix(const char *name) {
    if (strncmp(name, ZYGOTE, strlen(ZYGOTE)) == 0)
        return strlen(ZYGOTE);
    return strspn(name, "0123456789");
}

/* Calls `each` for every name in the folder of the slots that `is_meant` accepts. Names
 * that appear meanwhile may be passed over. */
static int for_names(const struct slot_folders *folders, const void *wanted,
                     bool (*is_meant)(const char *name, const void *wanted),
                     int (*each)(const struct slot_folders *folders, const char *name,
                                 struct viv_error *err),
                     struct viv_error *err) {
    int fd = openat(folders->slots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int failed = 0;

    if (!stream) {
        close_fd_cleanup(&fd);
        return viv_fail(err, VIV_SYSTEM, "read slot_directory: %m");
    }
    while (!failed && (entry = readdir(stream)))
        if (is_meant(entry->d_name, wanted))
            failed = each(folders, entry->d_name, err);
    closedir(stream);
    return failed;
}

/* ---- confined: one tree for each slot, by the slot's number ---- */

/* Removes what is in the writable folders of a tree that belong to another user: who had
 * the slot before slot_uid_base was changed. */
static int empty_strangers(int tree, uid_t worker, struct viv_error *err) {
    struct stat status;

    for (size_t i = 0; i < SLOT_TREE_WRITABLE; i++) {
        if (fstatat(tree, slot_tree_writable[i], &status, AT_SYMLINK_NOFOLLOW) ||
            status.st_uid == 0 || status.st_uid == worker)
            continue;
        const struct wipe_user user = {.owner = status.st_uid, .guard = status.st_uid};
        if (wipe_folders(tree, &slot_tree_writable[i], 1, &user, WIPE_LIMIT_MS, err))
            return -1;
    }
    return 0;
}

/* Removes the writable folders of a tree, which fails unless they are empty. */
static int remove_writable(int tree, struct viv_error *err) {
    for (size_t i = 0; i < SLOT_TREE_WRITABLE; i++)
        if (unlinkat(tree, slot_tree_writable[i], AT_REMOVEDIR) && errno != ENOENT)
            return viv_fail(err, VIV_SYSTEM, "remove %s: %m", slot_tree_writable[i]);
    return 0;
}

/* Puts new folders in the place of the writable ones: a mode, attributes, an access list
 * that a session gave them go, and what still has one open has no part in the new one. */
static int renew_writable(int tree, uid_t worker, struct viv_error *err) {
    if (remove_writable(tree, err))
        return -1;
    for (size_t i = 0; i < SLOT_TREE_WRITABLE; i++)
        if (mkdirat(tree, slot_tree_writable[i], S_IRWXU) ||
            fchownat(tree, slot_tree_writable[i], worker, worker, AT_SYMLINK_NOFOLLOW))
            return viv_fail(err, VIV_SYSTEM, "make %s: %m", slot_tree_writable[i]);
    return 0;
}

static struct wipe_user user_of_slot(const struct settings *settings, uint32_t slot) {
    if (slot == JANITOR_ZYGOTE) {
        uid_t zygote = slot_zygote_uid(settings);
        return (struct wipe_user){.owner = zygote, .guard = zygote, .kill = true};
    }
    /* With the supervisor's number it is out of reach of the worker, and reaches both. */
    return (struct wipe_user){.owner = slot_worker_uid(settings, slot),
                              .guard = slot_supervisor_uid(settings, slot),
                              .kill = true};
}

static int prepare_tree(const struct slot_folders *folders, uint32_t slot,
                        struct viv_error *err) {
    const struct wipe_user user = user_of_slot(folders->settings, slot);
    char name[NAME_SIZE];

    name_slot(name, slot);
    if (slot_tree_make(folders->slots, name, err) ||
        slot_tree_set_user(folders->slots, name, user.owner, err))
        return -1;
    CLEANUP(close_fd) int tree = openat(folders->slots, name, FOLDER);
    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    if (wipe_folders(tree, slot_tree_writable, SLOT_TREE_WRITABLE, &user, WIPE_LIMIT_MS,
                     err) ||
        empty_strangers(tree, user.owner, err) || renew_writable(tree, user.owner, err))
        return -1;
    return steal_fd(&tree);
}

static bool is_tree(const char *name, const void *wanted) {
    size_t prefix = slot_prefix(name);

    (void)wanted;
    return prefix > 0 && name[prefix] == '\0';
}

static int remove_tree(const struct slot_folders *folders, const char *name,
                       struct viv_error *err) {
    CLEANUP(close_fd) int tree = openat(folders->slots, name, FOLDER);

    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    if (empty_strangers(tree, 0, err) || remove_writable(tree, err))
        return -1;
    return slot_tree_remove(folders->slots, name, err);
}

static int renew_trees(const struct slot_folders *folders, struct viv_error *err) {
    if (slot_trees_are_outdated(folders->slots) &&
        (for_names(folders, NULL, is_tree, remove_tree, err) ||
         slot_tree_remove(folders->slots, "base", err)))
        return -1;
    return slot_trees_note(folders->slots, err);
}

static int make_tree_ahead(const struct slot_folders *folders, uint32_t slot,
                           struct viv_error *err) {
    const struct wipe_user user = user_of_slot(folders->settings, slot);
    char name[NAME_SIZE];

    name_slot(name, slot);
    return slot_tree_make_ahead(folders->slots, name, err)
               ? -1
               : slot_tree_set_user(folders->slots, name, user.owner, err);
}

int slot_folders_make_ahead(const struct slot_folders *folders, struct viv_error *err) {
    for (uint32_t slot = 0; slot < folders->settings->slots; slot++)
        if (make_tree_ahead(folders, slot, err))
            return -1;
    return make_tree_ahead(folders, JANITOR_ZYGOTE, err);
}

/* ---- minimal: a new folder for each session, by a name that nobody can guess ---- */

/* Whether it is the folder of a session: of the wanted slot, or, without one, of any. */
static bool is_session(const char *name, const void *wanted) {
    const char *slot = wanted;
    size_t prefix = slot_prefix(name);

    if (prefix == 0 || name[prefix] != '-' ||
        (slot && (strlen(slot) != prefix || strncmp(name, slot, prefix) != 0)))
        return false;
    const char *random = name + prefix + 1;
    return strspn(random, "0123456789abcdef") == RANDOM_DIGITS &&
           random[RANDOM_DIGITS] == '\0';
}

static int remove_session(const struct slot_folders *folders, const char *name,
                          struct viv_error *err) {
    if (wipe_folders(folders->slots, &name, 1, NULL, WIPE_LIMIT_MS, err))
        return -1;
    if (unlinkat(folders->slots, name, AT_REMOVEDIR))
        return viv_fail(err, VIV_SYSTEM, "remove the folder of a session: %m");
    return 0;
}

/* It is in nobody's reach: what cannot be removed is no reason not to start. */
static int try_remove_session(const struct slot_folders *folders, const char *name,
                              struct viv_error *err) {
    if (remove_session(folders, name, err))
        viv_log_failure(VIV_LOG_WARNING, "session_folder_kept", err->message, NULL);
    return 0;
}

static int make_session(const struct slot_folders *folders, const char *name,
                        struct viv_error *err) {
    static const char *const inside[] = {"home", "tmp", "shm"};

    if (mkdirat(folders->slots, name, S_IRWXU))
        return viv_fail(err, VIV_SYSTEM, "make the folder of a session: %m");
    CLEANUP(close_fd) int folder = openat(folders->slots, name, FOLDER);
    if (folder < 0)
        return viv_fail(err, VIV_SYSTEM, "open the folder of a session: %m");
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (mkdirat(folder, inside[i], S_IRWXU))
            return viv_fail(err, VIV_SYSTEM, "make %s of a session: %m", inside[i]);
    return steal_fd(&folder);
}

static int prepare_session(const struct slot_folders *folders, uint32_t slot,
                           struct viv_error *err) {
    unsigned char random[RANDOM_BYTES];
    char name[NAME_SIZE];

    name_slot(name, slot);
    if (for_names(folders, name, is_session, remove_session, err))
        return -1;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return viv_fail(err, VIV_SYSTEM, "getrandom: %m");
    size_t length = strlen(name);
    name[length++] = '-';
    for (size_t i = 0; i < sizeof random; i++, length += 2)
        snprintf(name + length, NAME_SIZE - length, "%02x", random[i]);
    return make_session(folders, name, err);
}

/* ---- both ---- */

/* A tree stays for the next start; what a session has left in it does not. */
static int empty_tree(const struct slot_folders *folders, const char *name,
                      struct viv_error *err) {
    const uint32_t slot =
        strcmp(name, ZYGOTE) == 0 ? JANITOR_ZYGOTE : (uint32_t)strtoul(name, NULL, 10);
    const struct wipe_user user = user_of_slot(folders->settings, slot);
    CLEANUP(close_fd) int tree = openat(folders->slots, name, FOLDER);

    if (tree < 0 || wipe_folders(tree, slot_tree_writable, SLOT_TREE_WRITABLE, &user,
                                 WIPE_LIMIT_MS, err))
        viv_log_failure(VIV_LOG_WARNING, "slot_not_emptied",
                        tree < 0 ? "it cannot be opened" : err->message, NULL);
    return 0;
}

int slot_folders_end(const struct slot_folders *folders, struct viv_error *err) {
    return folders->tier == ISOLATION_CONFINED
               ? for_names(folders, NULL, is_tree, empty_tree, err)
               : for_names(folders, NULL, is_session, try_remove_session, err);
}

int slot_folders_start(struct slot_folders *folders, struct viv_error *err) {
    if (folders->tier == ISOLATION_CONFINED)
        return renew_trees(folders, err);
    return for_names(folders, NULL, is_session, try_remove_session, err);
}

int slot_folders_prepare(struct slot_folders *folders, uint32_t slot,
                         struct viv_error *err) {
    if (slot >= folders->settings->slots && slot != JANITOR_ZYGOTE)
        return viv_fail(err, VIV_VALIDATION, "there is no slot %u", slot);
    return folders->tier == ISOLATION_CONFINED ? prepare_tree(folders, slot, err)
                                               : prepare_session(folders, slot, err);
}
