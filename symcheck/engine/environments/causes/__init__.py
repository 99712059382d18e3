"""Why a claim fails: corrections under which it would hold, and the subgroup under which it does hold."""
