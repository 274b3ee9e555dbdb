"""Presentation of task reassignment: tables and charts of a plan for people."""
