"""Slow paths of the loop: where data goes, once a day, and which cluster has which server, every half hour."""
