import os
import tempfile
import unittest

from test_stops import HERE, LONG, processes, program, until

try:
    from jupyter_client import KernelManager
except ImportError as e:
    raise unittest.SkipTest(f"no jupyter_client: {e}") from e


HANG = 300  # seconds that only a test which hangs takes


class Kernel(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = room.name
        # by sockets in the folder: ports that are free now may be another test's when the kernel comes to bind them
        self.kernel = KernelManager(kernel_name="python3", transport="ipc", connection_file=self.room + "/kernel.json")
        self.kernel.start_kernel(env=dict(os.environ, TMPDIR=self.room, IPYTHONDIR=self.room))
        self.addCleanup(self.kernel.shutdown_kernel, now=True)
        self.client = self.kernel.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=HANG)

    def train(self):
        """Starts a training without end, and waits for its first epoch. A kernel whose cell fails sends the reply, and only
        then aborts the cells that wait, of which the next one here may be; stop_on_error=False has it abort none."""
        asked = self.client.execute(LONG.format(here=HERE, more=", progress=False"), stop_on_error=False)
        while True:
            said = self.client.get_iopub_msg(timeout=HANG)
            if said["parent_header"].get("msg_id") != asked:
                continue
            if said["msg_type"] == "stream" and "trains" in said["content"]["text"]:
                self.assertGreaterEqual(len(self.programs()), 3)  # starling, two workers
                return asked
            self.assertNotEqual(said["content"].get("execution_state"), "idle", "it ended")
            self.assertNotEqual(said["msg_type"], "error", said["content"])

    def reply(self, asked):
        while (said := self.client.get_shell_msg(timeout=HANG))["parent_header"]["msg_id"] != asked:
            pass
        return said["content"]

    def programs(self):
        return [p for p in processes(self.room) if program(p)]

    def test_stop_and_restart(self):
        asked = self.train()
        self.kernel.interrupt_kernel()
        self.assertEqual(self.reply(asked)["ename"], "KeyboardInterrupt")
        self.assertTrue(until(lambda: not self.programs()), self.programs())
        self.train()
        self.kernel.restart_kernel(now=True)
        self.assertTrue(until(lambda: not self.programs()), self.programs())


if __name__ == "__main__":
    unittest.main()
