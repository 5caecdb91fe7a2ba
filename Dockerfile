# SPDX-License-Identifier: MIT
# Vivarium in one container: lighttpd on port 3080, vivarium-fcgi, vivarium-executor, and an init
# that keeps them running. contrib/docker/README.md says how to build and run it.

ARG BASE=debian:trixie-slim

# ---- the programs ----

FROM $BASE AS build

RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        autoconf automake gcc libc6-dev make pkg-config \
        libb64-dev libfcgi-dev libjansson-dev libpython3-dev libseccomp-dev python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN ./autogen.sh \
    && mkdir /build && cd /build \
    && /source/configure --quiet --prefix=/usr --sysconfdir=/etc --localstatedir=/var \
    && make --silent --jobs="$(nproc)" all \
    && make --silent install-strip DESTDIR=/installed \
    && rm -rf /installed/usr/share/man /installed/usr/share/doc
COPY contrib/docker/init contrib/docker/healthcheck /installed/usr/libexec/vivarium/
COPY contrib/lib/processes.py contrib/lib/serving.py /installed/usr/libexec/vivarium/lib/

# ---- what runs ----

FROM $BASE

# More packages of Debian for sessions to import from: "python3-scipy python3-sklearn".
ARG EXTRA_PACKAGES=""

COPY --from=build /installed/ /

# One step, the trees of the slots last in it: there they are second names of the files just
# installed. Anywhere later each of these files would be copied into a layer of its own.
#
# * What is left out of packages is data alone: dpkg compiles the Python files that a package
#   lists, and fails where one is missing.
# * fonttools depends on sympy for a generator of code that nobody runs here, 71 MB; an empty
#   package stands in, of a version below any other, so that EXTRA_PACKAGES may name the real one.
#   munkres is named because it is the small one of two that fonttools takes; the other is scipy.
# * The tests of pandas and matplotlib go; numpy's do not, numpy.testing imports them.
# * matplotlib looks for letters that the first font lacks in those that are named after it.
RUN set -eu; export DEBIAN_FRONTEND=noninteractive; \
    for path in bug doc info javascript lintian locale man unicode; do \
        echo "path-exclude=/usr/share/$path/*"; \
    done >/etc/dpkg/dpkg.cfg.d/vivarium; \
    echo 'path-include=/usr/share/doc/*/copyright' >>/etc/dpkg/dpkg.cfg.d/vivarium; \
    mkdir -p /tmp/sympy/DEBIAN; \
    printf '%s\n' 'Package: python3-sympy' 'Version: 0~vivarium' 'Architecture: all' \
        'Maintainer: Vivarium <root@localhost>' 'Description: stands in for sympy, empty' \
        >/tmp/sympy/DEBIAN/control; \
    dpkg-deb --build /tmp/sympy /tmp/sympy.deb; dpkg --install /tmp/sympy.deb; \
    apt-get update; \
    apt-get install -y --no-install-recommends \
        libb64-0d libfcgi0t64 libjansson4 libpython3.13 libseccomp2 lighttpd passwd \
        python3 python3-numpy python3-pandas python3-matplotlib python3-munkres \
        python3-jinja2 python3-openpyxl libopenblas0-pthread fonts-wqy-microhei tzdata \
        $EXTRA_PACKAGES; \
    apt-get clean; \
    rm -rf /tmp/sympy /tmp/sympy.deb /var/lib/apt/lists/* \
        /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old \
        /usr/lib/python3/dist-packages/pandas/tests \
        /usr/lib/python3/dist-packages/matplotlib/tests; \
    echo 'font.family: sans-serif, WenQuanYi Micro Hei' >>/etc/matplotlibrc; \
    useradd --system --no-create-home --shell /usr/sbin/nologin vivarium; \
    vivarium-executor --prepare-slots

EXPOSE 3080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=3s --timeout=6s --start-period=60s --retries=5 \
    CMD ["/usr/bin/python3", "-IS", "/usr/libexec/vivarium/healthcheck"]
# No entry point: `docker run --rm IMAGE vivarium-executor --check` is a command like any other.
CMD ["/usr/libexec/vivarium/init"]
