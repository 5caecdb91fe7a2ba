# SPDX-License-Identifier: MIT
"""What the tests over HTTP share: the server under test, a client, the contract's shapes."""
