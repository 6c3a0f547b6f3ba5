"""Executes notebooks, as a test does, and writes a page of each: run_notebook.py FOLDER FILE... Each shows the chart of a
run, and nothing as an error."""

import asyncio
import html
import os
import sys
import tempfile

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

HANG = 600  # seconds that only a notebook which hangs takes: its last outputs may come long after the reply
# As notebooks show cells: lines of text go on below, tables that are wider than the window scroll.
HEAD = """<!DOCTYPE html><meta charset="utf-8"><title>notebook</title><style>:root { color-scheme: light dark }
body { font: 14px sans-serif; margin: 1rem } pre { white-space: pre-wrap; overflow-wrap: anywhere } .out { overflow-x: auto }
table { border-collapse: collapse } td, th { padding: 0.3em 0.5em }</style>
"""


def shows(output):
    """An output as HTML."""
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="out">{data["text/html"]}</div>\n'
    lines = output.get("text", data.get("text/plain", "")).split("\n")
    return f"<pre>{html.escape(chr(10).join(line.rsplit(chr(13), 1)[-1] for line in lines))}</pre>\n"


def page(book):
    return HEAD + "".join(f"<pre>{html.escape(cell.source)}</pre>\n" + "".join(map(shows, cell.get("outputs", [])))
                          for cell in book.cells)


async def shown(folder, path):
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as room:
        # by sockets in a folder, as test_kernel.py says
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=os.path.join(room, "kernel.json"))
        client = NotebookClient(book, kernel, timeout=HANG, startup_timeout=HANG, iopub_timeout=HANG, coalesce_streams=True)
        await client.async_execute(cleanup_kc=True, env=dict(os.environ, IPYTHONDIR=room))
    with open(os.path.join(folder, os.path.basename(path) + ".html"), "w", encoding="utf-8") as f:
        f.write(page(book))
    outputs = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    charts = [o for o in outputs if "<svg" in o.get("data", {}).get("text/html", "")]
    errors = [o.text for o in outputs if o.get("name") == "stderr"]
    print(path, len(outputs), "outputs,", len(charts), "charts", *errors)
    return charts and not errors


async def main(folder, *paths):
    return all(await asyncio.gather(*(shown(folder, path) for path in paths)))


sys.exit(not asyncio.run(main(*sys.argv[1:])))
