import contextlib
import io
import os
import stat
import tempfile
import unittest
from unittest import mock

from graphs import blocks

import starling

try:
    import tqdm  # noqa: F401
except ImportError as e:
    raise unittest.SkipTest(f"no tqdm: {e}") from e

FAILS = """#!/bin/sh
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i" >&2; done
echo "starling: $1: no worker answers" >&2
exit STATUS
"""


class Shown(unittest.TestCase):
    def test_bar(self):
        for wanted, shown in ((True, True), (False, False), (None, False)):  # None: a terminal is shown one
            with contextlib.redirect_stderr(io.StringIO()) as err:
                starling.train(*blocks(), model="gcn", epochs=7, name="shop", progress=wanted)
            last = err.getvalue().rsplit("\r", 1)[-1]
            if shown:
                self.assertRegex(last, r"gcn on shop: 100%.* 7/7 .*epoch.*loss=[0-9.]+, val=[0-9.]+")
            else:
                self.assertEqual(err.getvalue(), "")

    def test_bar_of_a_terminal(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        with contextlib.redirect_stderr(Terminal()) as err:
            starling.train(*blocks(), epochs=3)
        self.assertIn(" 3/3 ", err.getvalue())

    def test_end_of_the_log(self):
        with tempfile.TemporaryDirectory() as room:
            path = os.path.join(room, "fails")
            for status, kind in ((1, starling.Failed), (2, starling.Mistake)):
                with open(path, "w") as f:
                    f.write(FAILS.replace("STATUS", str(status)))
                os.chmod(path, stat.S_IRWXU)
                with mock.patch.dict(os.environ, STARLING=path), self.assertRaises(kind) as raised:
                    starling.train(*blocks(), epochs=1)
                e = raised.exception
                self.assertEqual(e.sentence, "train: no worker answers")
                self.assertEqual(e.log, [f"line {i}" for i in range(1, 13)])
                self.assertEqual(str(e).split("\n  "), [e.sentence, *e.log[-10:]])


if __name__ == "__main__":
    unittest.main()
