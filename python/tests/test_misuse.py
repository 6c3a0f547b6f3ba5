import multiprocessing
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from graphs import blocks

import starling

HERE = os.path.dirname(os.path.abspath(__file__))
FULL = f"""
import os, sys; sys.path.insert(0, {HERE!r})
import starling
from graphs import blocks
try:
    starling.train(*blocks(VERTICES, width=WIDTH), epochs=2)
except starling.Error as e:
    print(e.sentence)
"""


def losses(queue):
    queue.put(starling.train(*blocks(), epochs=2).report["loss"])


def fails(data, x=None, y=None, **more):
    """The sentence of a mistake."""
    try:
        starling.train(data, x, y, **more)
    except starling.Mistake as e:
        return e.sentence
    return "it trained"


class Misuse(unittest.TestCase):
    def test_sentences(self):
        e, x, y = blocks(30, edges=50)
        high, low, nan = e.copy(), e.copy(), x.copy()
        high[0, 7], low[1, 9] = 30, -1
        nan[3, 2] = np.nan
        for want, got in (
            (f"edge_index: found shape {e.T.shape}, want (2, edges): sources above targets; transpose it", (e.T, x, y)),
            ("edge_index: found type float64, want whole numbers", (e * 1.0, x, y)),
            ("edge_index: found source 30 in column 7, want 0 to 29; there is a vertex for each row of x", (high, x, y)),
            ("edge_index: found target -1 in column 9, want 0 to 29; there is a vertex for each row of x", (low, x, y)),
            ("x: found shape (30,), want (vertices, features); x.reshape(-1, 1) makes a column of numbers", (e, x[:, 0], y)),
            ("x: found 1 values that are NaN or infinite, the first in row 3, column 2, want numbers; numpy.nan_to_num "
             "replaces them, or leave out these rows", (e, nan, y)),
            ("x: found type <U1, want numbers; give words a number or a column each", (e, np.full((30, 2), "a"), y)),
            ("y: found 29 labels, want 30, one for each vertex", (e, x, y[1:])),
            ("y: found class -5, want classes from 0 on; -1: no label", (e, x, y - 5)),
            ("y: found no label at all, want a class for some vertices; leave y out, and give task='link'",
             (e, x, np.full(30, -1))),
            ("graph: found no vertices, want at least one", (np.zeros((2, 0), int),)),
            ("graph: found no vertices, want at least one", (np.zeros((2, 0), int), np.zeros((0, 4)))),
            ("data: found a dict, want a folder, an edge_index, PyG's Data, a DGL graph or a DataFrame", ({},)),
            ("nowhere: found no such folder, want a dataset; starling.load downloads one, and knows demo without a network",
             ("nowhere",)),
        ):
            self.assertEqual(fails(*got), want)
        self.assertEqual(fails(e, x, y, train=np.arange(40)), "train: found vertex 39, want 0 to 29")
        self.assertEqual(fails(e, x, y, edge_weight=np.ones(3)),
                         f"edge_weight: found 3 rows, want {e.shape[1]}, one for each edge")
        self.assertRegex(fails(e, x, y, model="gnc"), '^--model: found "gnc", want one of gcn, ')
        self.assertRegex(fails(e, x, y, hiden=3), "did you mean --hidden")
        self.assertRegex(fails(e, x), "labels")

    def test_what_may_be(self):
        _, x, y = blocks(30, edges=50)
        starling.train(np.zeros((2, 0), np.int32), x, y, epochs=1)  # no edges
        e = np.array([[0, 0, 1], [1, 1, 1]], np.uint8)  # twice the same, and a loop
        starling.train(e, x.astype(np.float16), y.astype(np.uint8), epochs=1)
        starling.train(e.tolist(), x.tolist(), y.tolist(), epochs=1)

    def test_no_folder_is_left(self):
        here = set(os.listdir(tempfile.gettempdir()))
        starling.train(*blocks(), epochs=1).predict()
        self.assertEqual(fails(*blocks(), model="x")[:7], "--model")
        self.assertEqual(set(os.listdir(tempfile.gettempdir())), here)

    def test_several_at_once(self):
        want = starling.train(*blocks(), epochs=2)  # a child that is forked after use must not remove its folders
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            children = [context.Process(target=losses, args=(queue,)) for _ in range(2)]
            for c in children:
                c.start()
            got = [queue.get(timeout=120) for _ in children]
            for c in children:
                c.join(60)
                self.assertEqual(c.exitcode, 0)
            queue.close()
            self.assertEqual(got, [want.report["loss"]] * 2)
        self.assertEqual(len(want.predict()), 300)

    def test_full_disk(self):
        for size, vertices, width, sentence in (
            ("256k", 30_000, 20, r"features.npy: .*bytes cannot be written; free some, or name another folder in \$TMPDIR"),
            ("196k", 600, 60, r"on a disk with [0-9.]+ KiB free, want at least [0-9.]+ KiB of free space; choose another disk"),
        ):
            code = FULL.replace("VERTICES", str(vertices)).replace("WIDTH", str(width))
            with tempfile.TemporaryDirectory() as room:
                out = subprocess.run(
                    ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} none "$1" || exit 77; shift; "$@"; '
                     f'echo left: $(ls -A {room})', "sh", room, sys.executable, "-c", code], env=dict(os.environ, TMPDIR=room),
                    capture_output=True, text=True)
                if out.returncode == 77 or "unshare" in out.stderr:
                    self.skipTest("no small disk can be mounted here: " + out.stderr)
                self.assertRegex(out.stdout, sentence, out.stderr)
                self.assertRegex(out.stdout, "left:\n$")

    def test_import_is_quick(self):
        code = ("import sys, numpy, time; t = time.process_time(); import starling; print(time.process_time() - t, "
                "*(m for m in ('torch', 'pandas', 'sklearn', 'tqdm', 'http.client') if m in sys.modules))")
        seconds = []  # of the processor: what else runs here is not in it
        for _ in range(5):
            out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
            self.assertEqual(out[1:], [])
            seconds.append(float(out[0]))
            if seconds[-1] < 0.2:
                break
        self.assertLess(min(seconds), 0.2)


if __name__ == "__main__":
    unittest.main()
