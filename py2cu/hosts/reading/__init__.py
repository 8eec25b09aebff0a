"""Read the statements and expressions of host functions: LibCST nodes → C++ lines."""
