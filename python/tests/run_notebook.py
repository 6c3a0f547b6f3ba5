"""Executes notebooks, as a test does: run_notebook.py FILE... Each shows the chart of a run, and nothing as an error."""

import asyncio
import os
import sys
import tempfile

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

HANG = 600  # seconds that only a notebook which hangs takes: its last outputs may come long after the reply


async def shown(path):
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as room:
        # by sockets in a folder, as test_kernel.py says
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=os.path.join(room, "kernel.json"))
        client = NotebookClient(book, kernel, timeout=HANG, startup_timeout=HANG, iopub_timeout=HANG, coalesce_streams=True)
        await client.async_execute(cleanup_kc=True, env=dict(os.environ, IPYTHONDIR=room))
    outputs = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    charts = [o for o in outputs if "<svg" in o.get("data", {}).get("text/html", "")]
    errors = [o.text for o in outputs if o.get("name") == "stderr"]
    print(path, len(outputs), "outputs,", len(charts), "charts", *errors)
    return charts and not errors


async def main():
    return all(await asyncio.gather(*map(shown, sys.argv[1:])))


sys.exit(not asyncio.run(main()))
