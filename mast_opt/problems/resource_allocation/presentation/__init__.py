"""Presentation of resource-allocation plans: tables and charts for people."""
