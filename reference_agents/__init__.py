"""Reference agents: PPO and A2C that train the verified networks."""
