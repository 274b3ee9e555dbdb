"""Tetris: a data-placement heuristic with a proven bound.

``arrays`` and ``state`` hold the problem and a plan as flat arrays; ``moves`` prices and applies changes exactly;
``guess`` proposes likely ones; ``anneal`` is the search over them; ``relaxation`` computes the bound; ``tetris`` runs
both side by side.
"""
