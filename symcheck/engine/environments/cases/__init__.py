"""What is compared: states and cases drawn, both sides measured, tolerances, counterexamples made small."""
