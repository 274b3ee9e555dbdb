"""Presentation of server assignment: tables and charts of a plan for people."""
