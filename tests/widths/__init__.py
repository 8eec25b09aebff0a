"""A checker of widths: the emitted CUDA text with integers of a few bits, which report what they cannot hold."""
