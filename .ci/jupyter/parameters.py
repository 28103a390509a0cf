"""Writes a notebook with a cell of parameters. Arguments: the file, and the code of the last cell."""

import sys

import nbformat

PRINT = 'println!("{size} {name} {share:?} {deep} {:?}", [size, size]);'
cells = [
    nbformat.v4.new_code_cell(
        'let size: usize = 1; let name = String::new(); let share = 0.0f32; let deep = false;', metadata={"tags": ["parameters"]}
    ),
    nbformat.v4.new_code_cell(sys.argv[2] if len(sys.argv) > 2 else PRINT),
]
kernel = {"kernelspec": {"name": "syncscope", "display_name": "Rust (syncscope)", "language": "rust"}}
nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), sys.argv[1])
