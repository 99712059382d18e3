"""PPO on small vector networks in machine code, where a C compiler is at hand."""
