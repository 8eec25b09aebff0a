"""Names of what a file of C++ declares: functions, tables, structs and constants."""
