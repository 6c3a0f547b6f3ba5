import os
import tempfile
import time
import unittest

from test_stops import HERE, LONG, processes, program, until

try:
    from jupyter_client import KernelManager
except ImportError as e:
    raise unittest.SkipTest(f"no jupyter_client: {e}") from e


class Kernel(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = room.name
        self.kernel = KernelManager(kernel_name="python3")
        self.kernel.start_kernel(env=dict(os.environ, TMPDIR=self.room))
        self.addCleanup(self.kernel.shutdown_kernel, now=True)
        self.client = self.kernel.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=60)

    def train(self):
        """Starts a training without end, and waits for its first epoch."""
        asked = self.client.execute(LONG.format(here=HERE, more=", progress=False"),
                                    stop_on_error=False)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            said = self.client.get_iopub_msg(timeout=60)
            if said["msg_type"] == "stream" and "trains" in said["content"]["text"]:
                self.assertGreaterEqual(len(self.programs()), 3)  # starling, two workers
                return asked
        self.fail("no epoch in 60 s")

    def programs(self):
        return [p for p in processes(self.room) if program(p)]

    def test_stop_and_restart(self):
        asked = self.train()
        self.kernel.interrupt_kernel()
        reply = self.client.get_shell_msg(timeout=60)
        while reply["parent_header"]["msg_id"] != asked:
            reply = self.client.get_shell_msg(timeout=60)
        self.assertEqual(reply["content"]["ename"], "KeyboardInterrupt")
        self.assertEqual(self.programs(), [])
        self.train()
        self.kernel.restart_kernel(now=True)
        self.assertTrue(until(lambda: not self.programs()), self.programs())


if __name__ == "__main__":
    unittest.main()
