"""Does a case fail when what keeps a rule of the language is taken out? `python -m tests.mutations` shows it.

`rules/*.rules` holds the rows: a rule, an anchor in the source that keeps it, a mutation, the cases that must notice.
"""
