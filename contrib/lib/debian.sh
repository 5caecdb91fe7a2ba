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
    python3-yaml nginx systemd libfaketime)

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# install_stopped PACKAGE SERVICE...: some of Debian's packages start services, now and at every
# boot: a web server on port 80, an engine of containers. Whoever had them before keeps them as
# they were; nobody gets them from us. invoke-rc.d(8) and deb-systemd-invoke(1) ask policy-rc.d,
# the one for a service, the other for a unit.
install_stopped() {
    local package=$1 service status=0 policy=/usr/sbin/policy-rc.d own_policy=
    shift
    if [ ! -e $policy ]; then
        own_policy=yes
        # shellcheck disable=SC2016
        {
            printf '#!/bin/sh\n'
            for service; do
                printf 'case $1 in %s | %s.service) exit 101 ;; esac\n' "$service" "$service"
            done
        } | as_root tee $policy >/dev/null
        as_root chmod 755 $policy
    fi
    apt_install "$package" || status=$?
    [ -z "$own_policy" ] || as_root rm -f $policy
    for service; do
        if [ -d /run/systemd/system ]; then
            as_root systemctl disable --now "$service" || status=$?
        elif [ -e "/etc/init.d/$service" ]; then
            [ ! -e "/run/$service.pid" ] || as_root service "$service" stop || status=$?
            as_root update-rc.d "$service" disable || status=$?
        fi
    done
    return $status
}

# Docker's package, and with it containerd, unless that was there before.
install_docker() {
    local services=(docker docker.socket)
    is_installed containerd || services+=(containerd)
    install_stopped docker.io "${services[@]}"
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
            lighttpd | nginx) install_stopped "$package" "$package" || return ;;
            docker.io) install_docker || return ;;
            *) others+=("$package") ;;
        esac
    done
    [ ${#others[@]} -eq 0 ] || apt_install "${others[@]}"
}
