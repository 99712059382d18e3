"""Bounds on the loss of value under an approximate symmetry or an approximate homomorphism.

Both bounds follow from a contraction argument. A map of the MDP to itself may preserve rewards only up to epsilon_R and
distributions up to epsilon_T. Such a map changes optimal values by at most a one-step error divided by 1 - discount,
because errors of later steps are discounted. The bounds are worst-case bounds: on random MDPs about ten times the true
gap at discount 0.9 and a hundred times at 0.99, so reports say "at most".
"""

from __future__ import annotations

import math
from typing import Any

from symcheck.errors import OptionError


def value_gap_bound(
    epsilon_reward: float,
    epsilon_transition: float,
    discount: float,
    *,
    reward_range: float | None = None,
    value_span: float | None = None,
    lipschitz: float | None = None,
) -> float:
    """A bound on the difference between the optimal values of a pair and its image under an approximate symmetry.

        |Q*(s, a) - Q*(L s, K a)| <= (epsilon_R + discount epsilon_T S) / (1 - discount),    S = max V* - min V*,

    for every pair (s, a), with L a bijection of the states and K^s bijections of the actions, and

        epsilon_R = sup |R(s, a) - R(L s, K a)|,    epsilon_T = sup TV(L T(. | s, a), T(. | L s, K a)).

    S is `value_span`; if it is not known, `reward_range / (1 - discount)` is an upper bound for it. With `lipschitz`,
    epsilon_T is the largest Wasserstein-1 distance of the two distributions and S is the Lipschitz constant of V*; use
    this form for deterministic dynamics, for which the total variation is 1 for any difference. If
    episodes terminate, the terminal state counts as one more state of value 0: include 0 in the span and in the range
    of rewards.

    Args:
        epsilon_reward: in units of reward, >= 0.
        epsilon_transition: total variation (half the L1 distance) in [0, 1]; with `lipschitz` a Wasserstein-1 distance.
        discount: in [0, 1).
        reward_range: max R - min R, in units of reward.
        value_span: max V* - min V*, in units of return; takes precedence over `reward_range`.
        lipschitz: Lipschitz constant of V*, units of return per unit of distance.

    Returns:
        The bound, in units of return; 0 for an exact symmetry. If the suprema are estimated from samples, the bound
        is an estimate too, because samples underestimate suprema.

    Raises:
        OptionError: a number outside its range, or an epsilon_transition above 0 without a scale of values.

    Example:
        >>> value_gap_bound(0.25, 0.0, 0.5)
        0.5
        >>> value_gap_bound(0.0, 0.125, 0.5, reward_range=1.0)
        0.25

    Source: van der Pol et al. 2020, section 3.1, for the exact case; the approximate form is derived in
        docs/homomorphisms.md in the manner of Ravindran and Barto, "Approximate homomorphisms: a framework for
        non-exact minimization in Markov decision processes", KBCS 2004.
    """
    _check(epsilon_reward, "epsilon_reward")
    _check(epsilon_transition, "epsilon_transition")
    _check_discount(discount)
    scale = _value_scale(epsilon_transition, discount, reward_range, value_span, lipschitz)
    # The fixed point of gap = epsilon_R + discount (epsilon_T scale + gap).
    return (epsilon_reward + discount * epsilon_transition * scale) / (1.0 - discount)


def lifted_policy_loss_bound(
    reward_error: float, transition_error: float, discount: float, *, abstract_value_span: float
) -> float:
    """A bound on the loss of value if the optimal policy of an approximate abstract MDP is lifted.

        V*(s) - V^lifted(s) <= 2 (K_R + discount span(V_abstract*) K_T / 2) / (1 - discount)    for every state s,

    with K_R = max |R(s, a) - R_abstract(h(s, a))| and K_T = max over (s, a) of the L1 distance of the distribution over
    blocks of T(. | s, a) and the abstract distribution of h(s, a).

    Args:
        reward_error: K_R, in units of reward.
        transition_error: K_T, an L1 distance in [0, 2].
        discount: in [0, 1).
        abstract_value_span: max - min of the abstract optimal values, including 0 if episodes end.

    Returns:
        The bound, in units of return.

    Raises:
        OptionError: a number outside its range.

    Example:
        >>> lifted_policy_loss_bound(0.25, 0.0, 0.5, abstract_value_span=3.0)
        1.0

    Source: Ravindran and Barto 2004 state the bound with span <= (max R - min R) / (1 - discount). Taylor, Precup and
        Panangaden, "Bounding performance loss in approximate MDP homomorphisms", NIPS 21 (2008, printed 2009), bound
        the same loss by a metric between states. Derived in docs/homomorphisms.md.
    """
    _check(reward_error, "reward_error")
    _check(transition_error, "transition_error")
    _check(abstract_value_span, "abstract_value_span")
    _check_discount(discount)
    # Twice: the abstract optimum and the lifted policy each miss by one such gap; half an L1 distance is a variation.
    return 2.0 * (reward_error + discount * abstract_value_span * transition_error / 2.0) / (1.0 - discount)


def _value_scale(
    epsilon_transition: float,
    discount: float,
    reward_range: float | None,
    value_span: float | None,
    lipschitz: float | None,
) -> float:
    """The largest effect of one unit of epsilon_transition on the value."""
    for name, given in (("reward_range", reward_range), ("value_span", value_span), ("lipschitz", lipschitz)):
        if given is not None:
            _check(given, name)
    # Total variation is at most 1; a Wasserstein distance has no such limit.
    if lipschitz is None and not epsilon_transition <= 1.0:
        raise OptionError(
            f"expected a total variation, half the L1 distance, in [0, 1]; got {epsilon_transition!r}.",
            where="epsilon_transition",
            remedy="A Wasserstein-1 distance also needs lipschitz=, the Lipschitz constant of the optimal value.",
        )
    if lipschitz is not None:
        return lipschitz
    if value_span is not None:
        return value_span
    if reward_range is not None:
        # Values lie within reward_range / (1 - discount) of each other.
        return reward_range / (1.0 - discount)
    # Equal distributions contribute 0, whatever the scale.
    if epsilon_transition == 0.0:
        return 0.0
    raise OptionError(
        f"a bound for epsilon_transition = {epsilon_transition!r} requires the scale of the values.",
        where="value_gap_bound",
        remedy="Give value_span (max V* - min V*) or reward_range (max R - min R).",
    )


def _check(value: Any, name: str) -> None:
    if not 0.0 <= _as_number(value) < math.inf:
        raise OptionError(f"expected a finite number of at least 0, got {value!r}.", where=name)


def _check_discount(discount: Any) -> None:
    if not 0.0 <= _as_number(discount) < 1.0:
        raise OptionError(
            f"expected a discount in [0, 1), got {discount!r}.",
            where="discount",
            remedy="Without discounting, errors grow without limit; for a horizon of H steps, give 1 - 1 / H.",
        )


def _as_number(value: Any) -> float:
    """The number as a float; NaN if it is not a number."""
    # NaN fails every comparison in the checks above.
    return float(value) if hasattr(value, "__float__") else math.nan
