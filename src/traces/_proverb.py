"""The numbers of the proverb that the traces of week 6 follow, as the chapter states them.

Weights are stored out-by-in: (features written, features read). Nothing here is trained.
"""

from ..core.nn.positions import sinusoidal_positions

PHRASE = "A journey of a thousand miles begins"
CONTINUATION = "with a single step"
TOKENS = ("a", "journey", "of", "a", "thousand", "miles", "begins")
VOCABULARY = ("a", "journey", "of", "thousand", "miles", "begins", "with", "single", "step")
TOKEN_IDS = (0, 1, 2, 0, 3, 4, 5)
TARGET_ID = 6  # with

EMBEDDINGS = [  # (vocabulary, model)
    [0.2, -0.1, 0.4, 0.0, -0.2],  # a
    [0.5, 0.3, -0.2, 0.1, 0.4],  # journey
    [-0.1, 0.2, 0.0, -0.3, 0.1],  # of
    [0.4, -0.4, 0.2, 0.5, -0.1],  # thousand
    [0.1, 0.5, -0.3, 0.2, 0.3],  # miles
    [-0.3, 0.1, 0.5, -0.2, 0.2],  # begins
    [0.0, -0.2, 0.1, 0.3, -0.4],  # with
    [0.3, 0.0, -0.1, 0.4, 0.2],  # single
    [-0.2, 0.4, 0.3, -0.1, 0.5],  # step
]
SEQUENCE = [EMBEDDINGS[token_id] for token_id in TOKEN_IDS]  # (tokens, model)
POSITION_BASE = 10000.0
INPUT = SEQUENCE + sinusoidal_positions(7, 5, POSITION_BASE)  # H0 (tokens, model)

QUERY_WEIGHTS = [  # a head each, (score, model)
    [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]],
    [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0.5, 0.5, 0, 0, 0]],
]
KEY_WEIGHTS = [  # a head each, (score, model)
    [[0.5, 0, 0, 0.5, 0], [0, 1, 0, 0, 0], [0, 0, 0.5, 0, 0.5]],
    [[0, 0, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0.5, 0, 0, 0.5]],
]
VALUE_WEIGHTS = [  # a head each, (value, model)
    [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0.5, 0.5]],
    [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0.5, 0, 0, 0, 0.5]],
]
ATTENTION_OUTPUT_WEIGHT = [  # (model, value widths of both heads)
    [1, 0, 0, 0.5, 0, 0],
    [0, 1, 0, 0, 0.5, 0],
    [0, 0, 1, 0, 0, 0.5],
    [0.5, 0, 0, 0, 1, 0],
    [0, 0.5, 0, 1, 0, 0],
]

MLP_UP_WEIGHT = [  # W_1 (hidden, model)
    [1, 0, -0.5, 0, 0],
    [0, 1, 0, 0, -0.5],
    [0, 0, 1, 0.5, 0],
    [0.5, 0, 0, 0, 1],
]
MLP_UP_BIAS = [0.1, -0.2, 0.15, 0.05]
MLP_DOWN_WEIGHT = [  # W_2 (model, hidden)
    [0.5, 0, 0.2, 0],
    [0, 0.5, 0, 0.2],
    [0.2, 0, 0.5, 0],
    [0, 0.2, 0, 0.5],
    [0.3, 0, 0, 0.3],
]
MLP_DOWN_BIAS = [0.05, -0.05, 0.0, 0.1, -0.1]

NORM_GAIN = [1.0, 1.0, 1.0, 1.0, 1.0]  # of all three layer normalisations
NORM_SHIFT = [0.0, 0.0, 0.0, 0.0, 0.0]
NORM_EPSILON = 1e-5


def upstream(tokens: int, width: int) -> list[list[float]]:
    """An adjoint for (tokens, width) whose rows differ: ((3 t + 2 j) mod 7 - 3) / 10.

    All ones would say little: a layer normalisation without gain sends them back as zeros.
    """
    return [[((3 * t + 2 * j) % 7 - 3) / 10 for j in range(width)] for t in range(tokens)]
