"""Parts that every layer uses: errors, results, checked arrays, limits and compiled kernels. Imports nothing above
it."""
