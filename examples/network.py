"""A network of 2, 8 and 1 units learns exclusive or; its gradients are checked first."""

from llm_trace import autodiff, nn

rng = nn.SplitMix64(7)
hidden = nn.Linear.initialize("hidden", 2, 8, bias=True, rng=rng)
output = nn.Linear.initialize("output", 8, 1, bias=True, rng=rng)
x, y = autodiff.constant([[0, 0], [0, 1], [1, 0], [1, 1]]), autodiff.constant([[0], [1], [1], [0]])


def loss():
    return ((output(autodiff.tanh(hidden(x))) - y) ** 2).mean()


adam = nn.Adam([*hidden.parameters, *output.parameters], rate=0.05)
print("gradients agree:", autodiff.check_gradients(loss, adam.parameters).passed)
for _ in range(200):
    adam.zero_gradient()
    loss().backward()
    adam.step()
print(f"loss: {loss().value:.12f}")
