"""One file for each shape an input comes in: a folder, an Excel workbook, a JSON file."""
