# SPDX-License-Identifier: MIT
"""What is lost, what is left over and who has to wait when parts of the server fail."""
