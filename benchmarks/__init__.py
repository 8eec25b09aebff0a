"""What py2cu costs and gains, beside what people use today, measured in one run: `python -m benchmarks`."""
