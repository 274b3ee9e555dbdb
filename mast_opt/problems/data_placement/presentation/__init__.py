"""Presentation of data placement: tables and charts of a plan for people."""
