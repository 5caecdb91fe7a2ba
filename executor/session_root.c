/* SPDX-License-Identifier: MIT */
#include "executor/session_root.h"

#include "executor/control.h"

const struct session_root_shown session_root_shown[SESSION_ROOT_SHOWN] = {
    {"/lib", true},
    {"/lib64", true},
    {"/usr/lib64", true},
    {"/usr/lib/ld-linux-aarch64.so.1", false},
    {VIVARIUM_LIBRARY_DIRECTORY, true},
    {VIVARIUM_PYTHON_DIRECTORY, false},
    {"/usr/lib/python3", false},
    {"/etc/" VIVARIUM_PYTHON, false},
    {"/etc/ld.so.cache", false},
    {"/etc/alternatives", false},
    {"/etc/fonts", false},
    {"/etc/matplotlibrc", false},
    {"/etc/mime.types", false},
    {"/usr/share/matplotlib", false},
    {"/usr/share/fonts", false},
    {"/usr/share/zoneinfo", false},
};

const char *const session_root_hidden[SESSION_ROOT_HIDDEN] = {
    VIVARIUM_PYTHON_DIRECTORY "/ensurepip",
    VIVARIUM_PYTHON_DIRECTORY "/idlelib",
    VIVARIUM_PYTHON_DIRECTORY "/venv",
    "/usr/lib/python3/dist-packages/pip",
    "/usr/lib/python3/dist-packages/setuptools",
    "/usr/lib/python3/dist-packages/pkg_resources",
    "/usr/lib/python3/dist-packages/_distutils_hack",
    "/usr/lib/python3/dist-packages/wheel",
    /* It would run setuptools at every start of Python. */
    "/usr/lib/python3/dist-packages/distutils-precedence.pth",
    VIVARIUM_LIBRARY_DIRECTORY "/security",
};

const char *const session_root_directories[SESSION_ROOT_DIRECTORIES] = {
    "/usr",     "/usr/lib", "/usr/share", "/etc", "/dev",
    "/dev/shm", "/home",    SESSION_HOME, "/tmp", "/proc",
};

const struct session_root_file session_root_files[SESSION_ROOT_FILES] = {
    {"/etc/passwd", "earth:x:1000:1000::" SESSION_HOME ":/nonexistent\n"},
    {"/etc/group", "earth:x:1000:\n"},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"/etc/hosts", "127.0.0.1 localhost\n"},
};

const struct session_root_link session_root_links[SESSION_ROOT_LINKS] = {
    {"/etc/localtime", "/usr/share/zoneinfo/UTC"},
};

const struct session_root_device session_root_devices[SESSION_ROOT_DEVICES] = {
    {"null", 3}, {"zero", 5}, {"full", 7}, {"random", 8}, {"urandom", 9},
};
