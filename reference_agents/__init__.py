"""Reference agents: PPO and A2C that train many seeds and learning rates of a verified network as one program.

The pieces, from the bottom up: `randomness` (one stream per run), `environments` (vectorised over runs), `networks`
(parameters of all runs in one flat buffer), `learning` (returns, losses, optimiser), `evaluation`, `trainer` (the
loop), `verification` (is the network still equivariant?), `record` (what a run leaves on disk), `cli`.
"""
