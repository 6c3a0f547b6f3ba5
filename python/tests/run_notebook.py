"""Executes notebooks, as a test does: run_notebook.py FILE... Each shows the chart of a run, and nothing as an error."""

import asyncio
import sys

import nbformat
from nbclient import NotebookClient


async def shown(path):
    book = nbformat.read(path, as_version=4)
    await NotebookClient(book, timeout=300, kernel_name="python3", coalesce_streams=True).async_execute()
    outputs = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    charts = [o for o in outputs if "<svg" in o.get("data", {}).get("text/html", "")]
    errors = [o.text for o in outputs if o.get("name") == "stderr"]
    print(path, len(outputs), "outputs,", len(charts), "charts", *errors)
    return charts and not errors


async def main():
    return all(await asyncio.gather(*map(shown, sys.argv[1:])))


sys.exit(not asyncio.run(main()))
