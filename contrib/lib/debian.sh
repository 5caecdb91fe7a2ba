# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For quickstart and check: packages of Debian 12 and 13, installed only where one is missing.

# What builds and runs Vivarium.
# shellcheck disable=SC2034
build_packages=(autoconf automake gcc libc6-dev make pkg-config libfcgi-dev libjansson-dev
    libb64-dev libseccomp-dev libpython3-dev python3 python3-numpy python3-pandas
    python3-matplotlib lighttpd util-linux)

# What the tests need besides.
# shellcheck disable=SC2034
test_packages=(libcmocka-dev python3-pytest python3-flake8 clang clang-format clang-tidy cppcheck
    shellcheck codespell mandoc xz-utils bubblewrap curl python3-kubernetes
    python3-yaml nginx systemd)

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian's packages start a web server on port 80, now and at every boot. Whoever had it before
# keeps it as it was; nobody gets it from us. invoke-rc.d(8) asks policy-rc.d.
install_web_server() {
    local name=$1 policy=/usr/sbin/policy-rc.d own_policy=
    if [ ! -e $policy ]; then
        own_policy=yes
        # shellcheck disable=SC2016
        printf '#!/bin/sh\n[ "$1" != %s ] || exit 101\n' "$name" | as_root tee $policy >/dev/null
        as_root chmod 755 $policy
    fi
    local status=0
    apt_install "$name" || status=$?
    [ -z "$own_policy" ] || as_root rm -f $policy
    if [ -d /run/systemd/system ]; then
        as_root systemctl disable --now "$name" || status=$?
    else
        [ ! -e "/run/$name.pid" ] || as_root service "$name" stop || status=$?
        as_root update-rc.d "$name" disable || status=$?
    fi
    return $status
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Installs those of the named packages that are missing. Without any, apt is not even started.
need_packages() {
    local package missing=()
    for package; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing: ${missing[*]}" >&2
    as_root apt-get update || return
    local others=()
    for package in "${missing[@]}"; do
        case $package in
            lighttpd | nginx) install_web_server "$package" || return ;;
            *) others+=("$package") ;;
        esac
    done
    [ ${#others[@]} -eq 0 ] || apt_install "${others[@]}"
}
