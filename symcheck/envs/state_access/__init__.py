"""Setting the state of environments: registered access first, then built-in access."""

from symcheck.envs.state_access.access import find_state_access, register_state_access
from symcheck.envs.state_access.record import StateAccess

__all__ = ["StateAccess", "find_state_access", "register_state_access"]
