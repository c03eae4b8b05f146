"""Layers of language models, their named parameters and what trains them.

    from llm_trace import autodiff, nn

    layer = nn.Linear.initialize("layer", 2, 1, bias=True, rng=nn.SplitMix64(7))
    adam = nn.Adam(layer.parameters, rate=0.01)
    (layer(autodiff.constant([[1.0, 2.0]])) ** 2).mean().backward()
    adam.step()

A layer is made of parameters and is called with tensors of `llm_trace.autodiff`; `parameters` has
all of them in order, each a `name` and a `tensor`, and `tensors` has the same by name. Some layers
return the stages of their pass, whose last is the output. `Layer` is the base for layers of your
own.
"""

from .core.nn.adam import AdamOptimizer as Adam
from .core.nn.adamw import AdamW, AdamWConfig, ParameterGroups
from .core.nn.affine import Affine
from .core.nn.attention import AttentionHead, FusedAttention, MultiHeadAttention, causal, padding
from .core.nn.clipping import Clipped, clip_by_norm, clip_by_running_norm
from .core.nn.decoder import Decoder, DecoderConfig
from .core.nn.decoder_block import DecoderBlock
from .core.nn.dot_product import (
    AttentionPass,
    attend,
    causal_attention,
    grouped_attention,
    self_attention,
)
from .core.nn.embedding import Embedding
from .core.nn.encoder import MLP, EncoderBlock, EncoderStack
from .core.nn.gru import GRU
from .core.nn.layer import Layer
from .core.nn.layer_norm import LayerNorm
from .core.nn.linear import Linear
from .core.nn.lstm import LSTM
from .core.nn.neural_ngram import NeuralNgram
from .core.nn.parameters import NamedParameter, named_parameter, xavier_uniform
from .core.nn.patches import PatchEmbedding
from .core.nn.positions import sinusoidal_positions
from .core.nn.qkv import QKV
from .core.nn.residual import residual
from .core.nn.rms_norm import RMSNorm
from .core.nn.rnn import ElmanCell, StateHead, half_squared_error
from .core.nn.rope import RoPE
from .core.nn.rotary_attention import RotaryAttention
from .core.nn.splitmix64 import SplitMix64
from .core.nn.swiglu import SwiGLU

__all__ = [
    "GRU",
    "LSTM",
    "MLP",
    "QKV",
    "Adam",
    "AdamW",
    "AdamWConfig",
    "Affine",
    "AttentionHead",
    "AttentionPass",
    "Clipped",
    "Decoder",
    "DecoderBlock",
    "DecoderConfig",
    "ElmanCell",
    "Embedding",
    "EncoderBlock",
    "EncoderStack",
    "FusedAttention",
    "Layer",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "NamedParameter",
    "NeuralNgram",
    "ParameterGroups",
    "PatchEmbedding",
    "RMSNorm",
    "RoPE",
    "RotaryAttention",
    "SplitMix64",
    "StateHead",
    "SwiGLU",
    "attend",
    "causal",
    "causal_attention",
    "clip_by_norm",
    "clip_by_running_norm",
    "grouped_attention",
    "half_squared_error",
    "named_parameter",
    "padding",
    "residual",
    "self_attention",
    "sinusoidal_positions",
    "xavier_uniform",
]
