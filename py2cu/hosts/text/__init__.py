"""The text of host functions: wrappers, checks of arguments, declarations, the file."""
