"""The parts of a verification page, one module each.

`build(run)` returns a `Section`, or None if it has nothing to say.

To add one: write the module and its template, list it in `symcheck_reports.html`, and give it a gold file.
"""
