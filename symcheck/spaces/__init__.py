"""Values of Gymnasium spaces: flat vectors with named coordinates, reduced, probed, labelled, and made from JSON."""
