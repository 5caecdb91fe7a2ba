/* SPDX-License-Identifier: MIT */
#include "executor/launcher/check.h"

#include <string.h>

#include "common/json_out.h"

#define DIVIDER         "; "
#define NOT_GOOD_ENOUGH 4

static const char *const states[] = {
    [PROBE_WORKS] = "works",
    [PROBE_REFUSED] = "refused",
    [PROBE_ABSENT] = "absent",
};

static bool is_enough(const struct probe_report *report, const char *min_isolation) {
    return report->usable && isolation_check(report->tier, min_isolation, NULL) == 0;
}

int check_status(const struct probe_report *report, const char *min_isolation) {
    if (!is_enough(report, min_isolation))
        return NOT_GOOD_ENOUGH;
    return (int)ISOLATION_FULL - (int)report->tier;
}

/* ---- for people ---- */

/* The parts of a text, a line each. */
static void print_parts(const char *text, const char *indent, FILE *to) {
    for (size_t size; *text; text += size) {
        const char *end = strstr(text, DIVIDER);
        size = end ? (size_t)(end - text) : strlen(text);
        fprintf(to, "%s%.*s\n", indent, (int)size, text);
        size += end ? strlen(DIVIDER) : 0;
    }
}

void check_print(const struct probe_report *report, const char *min_isolation, FILE *to) {
    const char *said = NULL; /* the last remedy: the same one is said once in a row */

    for (int i = 0; i < PROBE_CONTROL_COUNT; i++) {
        const struct probe_control *control = &report->controls[i];
        bool works = control->state == PROBE_WORKS;
        fprintf(to, "%-26s  %s%s%s\n", control->name,
                works ? "ok" : states[control->state], works ? "" : ": ",
                control->reason);
        if (!control->matters || (said && strcmp(said, control->remedy) == 0))
            continue;
        said = control->remedy;
        fprintf(to, "    for: %s\n", control->needed_for);
        print_parts(said, "    try: ", to);
    }
    fprintf(to, "\ntier: %s (min_isolation is %s%s)\n",
            report->usable ? isolation_name(report->tier) : "none", min_isolation,
            is_enough(report, min_isolation) ? "" : ": vivarium-executor does not start");
    if (*report->weaker) {
        fputs("not a better one for:\n", to);
        print_parts(report->weaker, "    ", to);
    }
}

/* ---- for machines ---- */

static int write_to_file(void *context, const void *data, size_t size) {
    return fwrite(data, 1, size, context) == size ? 0 : -1;
}

static void write_member(struct json_out *out, const char *name, const char *text) {
    json_out_raw(out, name);
    json_out_text(out, text);
}

static void write_control(struct json_out *out, const struct probe_control *control) {
    write_member(out, "{\"name\":", control->name);
    write_member(out, ",\"needed_for\":", control->needed_for);
    write_member(out, ",\"state\":", states[control->state]);
    write_member(out, ",\"reason\":", control->reason);
    json_out_raw(out, ",\"remedies\":");
    json_out_parts(out, control->matters ? control->remedy : "", DIVIDER);
    json_out_raw(out, "}");
}

void check_print_json(const struct probe_report *report, const char *min_isolation,
                      FILE *to) {
    struct json_out out = {.sink = write_to_file, .context = to};

    write_member(&out,
                 "{\"tier\":", report->usable ? isolation_name(report->tier) : "none");
    write_member(&out, ",\"min_isolation\":", min_isolation);
    json_out_raw(&out, ",\"enough\":");
    json_out_bool(&out, is_enough(report, min_isolation));
    json_out_raw(&out, ",\"landlock_abi\":");
    json_out_signed(&out, report->landlock_abi);
    json_out_raw(&out, ",\"reasons\":");
    json_out_parts(&out, report->weaker, DIVIDER);
    json_out_raw(&out, ",\"controls\":[");
    for (int i = 0; i < PROBE_CONTROL_COUNT; i++) {
        json_out_raw(&out, i > 0 ? "," : "");
        write_control(&out, &report->controls[i]);
    }
    json_out_raw(&out, "]}\n");
}
