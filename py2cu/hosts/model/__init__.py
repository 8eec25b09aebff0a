"""What host functions consist of in C++: values, lines, signatures, the table of operators."""
