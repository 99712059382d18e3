"""The Python interface: `verify_env`, `verify_net` and the reports that they return.

Nothing is imported here, because checking an environment must not wait for torch.
"""
