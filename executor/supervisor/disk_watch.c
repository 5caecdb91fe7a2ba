/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/disk_watch.h"

#define LOOK_MS      250
#define IDLE_LOOK_MS 2000
#define SHARE        20 /* of the time, one part at most is spent on looking */

void disk_watch_init(struct disk_watch *watch, const struct supervisor_descriptors *own,
                     const struct settings *settings) {
    *watch = (struct disk_watch){
        .own = own,
        /* Home and /tmp together, as where they have quotas. */
        .most_bytes = settings->session_disk + settings->session_disk / 4,
        .most_inodes = settings->session_inodes + settings->session_inodes / 4,
        .look_at = isolation_has_namespaces(own->tier) ? VIV_TIME_NEVER : 0,
    };
}

static struct session_use measure(const struct disk_watch *watch) {
    return session_folders_use(watch->own->folders, watch->own->tier,
                               2 * watch->most_inodes);
}

static bool is_beyond(const struct session_use *use, uint64_t bytes, uint64_t inodes) {
    return use->bytes > bytes || use->inodes > inodes;
}

bool disk_watch_has_room(const struct disk_watch *watch) {
    if (isolation_has_namespaces(watch->own->tier))
        return true;
    struct session_use use = measure(watch);
    return !is_beyond(&use, watch->most_bytes, watch->most_inodes);
}

void disk_watch_begin(struct disk_watch *watch) {
    viv_time soon = viv_after_ms(LOOK_MS);

    if (soon < watch->look_at && watch->look_at != VIV_TIME_NEVER)
        watch->look_at = soon;
}

enum disk_verdict disk_watch_look(struct disk_watch *watch, bool running) {
    viv_time began = viv_now();
    struct session_use use = measure(watch);
    viv_time pause = (running ? LOOK_MS : IDLE_LOOK_MS) * VIV_MS;
    viv_time took = viv_now() - began;

    watch->look_at = viv_now() + (SHARE * took > pause ? SHARE * took : pause);
    if (is_beyond(&use, 2 * watch->most_bytes, 2 * watch->most_inodes))
        return DISK_FAR_TOO_FULL;
    if (!is_beyond(&use, watch->most_bytes, watch->most_inodes)) {
        watch->accepted = (struct session_use){0};
        return DISK_HAS_ROOM;
    }
    if (!is_beyond(&use, watch->accepted.bytes, watch->accepted.inodes))
        return DISK_HAS_ROOM;
    watch->accepted = use;
    return DISK_FULL;
}

uint64_t disk_watch_bytes(const struct disk_watch *watch) { return measure(watch).bytes; }
