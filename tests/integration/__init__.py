# SPDX-License-Identifier: MIT
"""The HTTP contract, one file per subject, over a real web server and real sandboxes."""
