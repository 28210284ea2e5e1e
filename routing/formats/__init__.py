"""Read and write the files of fabrics and tables, with one module for each file format."""
