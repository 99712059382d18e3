"""The parts of a learning-curve page, one module each: `build(view)` returns a `Section`, or None."""
