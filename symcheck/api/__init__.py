"""The Python interface: `verify_env`, `verify_net` and the reports that they return.

This module imports nothing, because checking an environment must not load torch.
"""
