# SPDX-License-Identifier: MIT
"""What code in a session must not be able to do, each attempt seen to fail and seen to matter."""
