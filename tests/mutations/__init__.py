"""Does a case fail when what keeps a rule of the language is taken out? `python -m tests.mutations` shows it.

`rules.py` holds the rows: a rule, the source text that keeps it, what stands there instead, the cases that must notice.
"""
