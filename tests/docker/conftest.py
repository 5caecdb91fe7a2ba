# SPDX-License-Identifier: MIT
"""Containers of the image. tests/docker/run builds it and says where the engine is."""

import contextlib

import pytest

from support.container import Container


@pytest.fixture(scope="module")
def plain():
    """A container with no flag and no setting at all, for tests that leave it as it was."""
    container = Container()
    try:
        yield container.start()
    finally:
        container.discard()


@pytest.fixture
def begin():
    """A function that starts a container of the test's own, and waits for nothing."""
    with contextlib.ExitStack() as stack:
        def one(*flags, **settings):
            container = Container(flags=flags, **settings)
            stack.callback(container.discard)
            container.launch()
            return container
        yield one
