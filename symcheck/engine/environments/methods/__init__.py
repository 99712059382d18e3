"""The methods that gather evidence (exact, paired, distribution, trajectory, start), and how one is selected."""
