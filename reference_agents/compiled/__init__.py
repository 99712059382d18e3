"""PPO on small vector networks in compiled C code, if a C compiler is available."""
