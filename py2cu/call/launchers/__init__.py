"""Launchers of calls: functions that are written out for a form of call, and launch compiled code."""
