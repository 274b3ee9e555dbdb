"""The loop in virtual time: traces of submitted jobs, and drivers that replay them."""
