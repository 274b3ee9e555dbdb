"""Presentation of job placement: tables and charts of a plan for people."""
