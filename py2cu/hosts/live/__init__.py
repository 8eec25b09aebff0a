"""Host functions in a running program: `Host`, its translation, its library, its calls and its check."""
