import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from graphs import blocks

import starling

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = """
import sys, os; sys.path.insert(0, {here!r})
import starling
from graphs import blocks
def first(e):
    if e["epoch"] == 0:
        print("trains", flush=True)
starling.train(*blocks(), epochs=100_000_000, workers=2, on_epoch=first{more})
"""


def processes(room):
    """The processes whose temporary folders are in room."""
    out = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f, open(os.path.join(os.path.dirname(path), "stat")) as stat:
                if ("TMPDIR=" + room).encode() in f.read() and ") Z " not in stat.read():
                    out.append(int(path.split("/")[2]))
        except OSError:
            pass
    return out


def program(p):
    """Tells if a process is the program."""
    try:
        return os.path.basename(os.readlink(f"/proc/{p}/exe")) == "starling"
    except OSError:
        return False


def until(true, seconds=300):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


@unittest.skipUnless(os.path.exists("/proc/self/environ"), "there is no /proc here")
class Stops(unittest.TestCase):
    def start(self, more=""):
        self.room = tempfile.mkdtemp()
        child = subprocess.Popen([sys.executable, "-c", LONG.format(here=HERE, more=more)], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=self.room))
        self.assertEqual(child.stdout.readline(), "trains\n")
        self.assertGreaterEqual(len(processes(self.room)), 4)  # Python, starling, two workers
        return child

    def end(self, child):
        child.communicate(timeout=300)
        self.assertTrue(until(lambda: not processes(self.room)), processes(self.room))

    def test_interrupt(self):
        child = self.start()
        child.send_signal(signal.SIGINT)
        self.end(child)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertEqual(os.listdir(self.room), [])

    def test_killed_python(self):
        child = self.start()
        child.kill()
        self.end(child)
        self.assertNotEqual(os.listdir(self.room), [])  # which the next one removes
        subprocess.run([sys.executable, "-c", "import starling._folder as f; f.Temporary()"], check=True,
                       env=dict(os.environ, TMPDIR=self.room))
        self.assertEqual(os.listdir(self.room), [])

    def test_exception_in_callback(self):
        with self.assertRaisesRegex(KeyError, "mine"):
            starling.train(*blocks(), epochs=100_000_000, on_epoch=lambda e: {}["mine"])
        self.assertEqual([p for p in processes(tempfile.gettempdir()) if program(p)], [])

    def test_killed_child(self):
        def kill(epoch):
            children = [p for p in processes(tempfile.gettempdir()) if program(p)]
            self.assertTrue(children or epoch["epoch"] > 0)  # epochs that were done before may still come
            for p in children:
                os.kill(p, signal.SIGKILL)
        with self.assertRaisesRegex(starling.Failed, r"starling was killed \(signal 9"):
            starling.train(*blocks(), epochs=100_000_000, on_epoch=kill)


if __name__ == "__main__":
    unittest.main()
