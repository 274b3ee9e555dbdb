"""Results in an Excel workbook: figures, pictures as coloured cells, the plan, and the instance that it is for."""
