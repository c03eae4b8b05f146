"""The three roles of a position in an attention head, in names of weights and in formulas."""

from ..core.arrays import Array
from ..core.nn.attention import AttentionHead
from ..core.nn.parameters import named_parameter

ROLES = ("query", "key", "value")


def named_head(prefix: str, query: Array, key: Array, value: Array) -> AttentionHead:
    """A head of out-by-in weights, called `prefix.query.weight` and so on."""
    return AttentionHead(
        named_parameter(f"{prefix}.query.weight", query),
        named_parameter(f"{prefix}.key.weight", key),
        named_parameter(f"{prefix}.value.weight", value),
    )


def of_roles(formula: str) -> dict[str, str]:
    """A record's formula for each weight of a head; its role stands in the place of ROLE."""
    return {f"name.endswith('.{role}.weight')": formula.replace("ROLE", role) for role in ROLES}
