"""A tanh RNN without biases, its head and its gradients in single precision, in one stated order.

PyTorch promises no order of its sums, and its kernels differ between processors. This one gives,
on the chapter's example, the bits of one run of PyTorch 2.13.0 with AVX-512, but not of every one:

- z_t starts at +0 and takes x_{t,0} W_x[i,0], x_{t,1} W_x[i,1], ..., then h_{t-1,0} W_h[i,0], ...,
  every product and addition rounded together; h_t is the correctly rounded tanh;
- a prediction takes its products one by one, product and addition rounded each on its own;
- the loss is half the sum of the squared errors, row-major;
- going back, every sum is fused and starts at +0: over coordinates in order, and for the gradients
  of the shared weights over the steps from the first to the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import OutOfRange, ShapeMismatch
from ..numerics.float32 import Array32, fused_multiply_add, tanh


class Weights32(NamedTuple):
    """Out-by-in weights; their gradients have the same shapes."""

    input_weight: Array32  # W_x, (hidden, features)
    recurrent_weight: Array32  # W_h, (hidden, hidden)
    head_weight: Array32  # W_o, (outputs, hidden)


class Pass32(NamedTuple):
    """Forward and backward."""

    states: Array32  # (batch, steps, hidden)
    prediction: Array32  # of the last state, (batch, outputs)
    error: Array32  # prediction - target
    loss: Array32  # a scalar
    gradients: Weights32


def rnn32(weights: Weights32, inputs: Array32, initial: Array32, target: Array32) -> Pass32:
    """x (batch, steps, features), h_{-1} (batch, hidden), target (batch, outputs).

    Raises ShapeMismatch, and OutOfRange where a value leaves the range of float32.
    """
    if inputs.shape[1] == 0:
        raise ShapeMismatch(layer="RNN", part="input", expected="at least one step", found=0)
    with np.errstate(all="ignore"):  # what leaves the range is refused by name
        run = _passes(weights, inputs, initial, target)
    named = run._asdict() | run.gradients._asdict()
    del named["gradients"]
    for part, values in named.items():
        if not np.isfinite(values).all():
            raise OutOfRange(
                layer="RNN",
                part=part.replace("_", " "),
                expected="numbers within the range of float32",
                found=float(values[~np.isfinite(values)].flat[0]),
            )
    return run


def _passes(weights: Weights32, inputs: Array32, initial: Array32, target: Array32) -> Pass32:
    w_x, w_h, w_o = weights
    before, state = [], initial
    for t in range(inputs.shape[1]):
        before.append(state)
        from_input = _fused(inputs[:, t], w_x.T, np.zeros(state.shape, dtype=np.float32))
        state = tanh(_fused(state, w_h.T, from_input))
    states = [*before[1:], state]
    prediction = np.zeros(target.shape, dtype=np.float32)
    for j in range(state.shape[1]):
        prediction = prediction + state[:, j, None] * w_o[None, :, j]
    error = prediction - target
    loss = np.float32(0.0)
    for value in error.reshape(-1):
        loss = loss + value * value
    gradients = _gradients(weights, inputs, before, states, error)
    loss32 = np.asarray(np.float32(0.5) * loss, dtype=np.float32)
    return Pass32(np.stack(states, axis=1), prediction, error, loss32, gradients)


def _gradients(
    weights: Weights32,
    inputs: Array32,
    before: list[Array32],
    states: list[Array32],
    error: Array32,
) -> Weights32:
    _, w_h, w_o = weights
    to_w_x, to_w_h, to_w_o = (np.zeros(weight.shape, dtype=np.float32) for weight in weights)
    to_preactivation = []
    to_state = _fused(error, w_o, np.zeros(states[-1].shape, dtype=np.float32))
    for state in reversed(states):
        slope = np.float32(1.0) - state * state
        to_preactivation.append(to_state * slope)
        to_state = _fused(to_preactivation[-1], w_h, np.zeros(state.shape, dtype=np.float32))
    for t, to_z in enumerate(reversed(to_preactivation)):
        to_w_x = _fused(to_z.T, inputs[:, t], to_w_x)
        to_w_h = _fused(to_z.T, before[t], to_w_h)
    return Weights32(to_w_x, to_w_h, _fused(error.T, states[-1], to_w_o))


def _fused(left: Array32, right: Array32, total: Array32) -> Array32:
    """total + left[:, 0] right[0] + left[:, 1] right[1] + ..., each step one rounding."""
    for k in range(left.shape[1]):
        total = fused_multiply_add(left[:, k, None], right[None, k], total)
    return total
