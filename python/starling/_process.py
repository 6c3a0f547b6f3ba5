"""Runs the program, and stops it when Python stops."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import Error, Failed, Mistake

_INTERRUPTED = 130
_SECONDS_TO_STOP = 30.0  # after Ctrl-C, for the epoch to be finished
_living: weakref.WeakSet[Child] = weakref.WeakSet()


def binary() -> str:
    """The program's path: $STARLING, the one in this package, or the first in $PATH."""
    given = os.environ.get("STARLING")
    if given:
        return given
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "starling")
    found = own if os.path.exists(own) else shutil.which("starling")
    if not found:
        raise Failed("starling: the package has no program for this machine: name one in $STARLING")
    return found


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Options as flags: weight_decay=0.1 is --weight-decay=0.1; a list is separated by commas, None is left out."""
    out = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            out.append(flag if value else flag + "=false")
        elif isinstance(value, (list, tuple)):
            out.append(f"{flag}={','.join(map(str, value))}")
        else:
            out.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return out


class Child:
    """One run of the program. Its standard output is read by lines(), its log is kept."""

    def __init__(self, args: list[str], echo: bool = False) -> None:
        self.log: deque[str] = deque(maxlen=200)
        self._owner = os.getpid()
        env = dict(os.environ, STARLING_PARENT=str(self._owner), NO_COLOR="1")
        try:
            self.process = subprocess.Popen(
                [binary(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                text=True, encoding="utf-8", errors="replace", start_new_session=True)
        except OSError as e:
            raise Failed(f"starling: the program cannot be started: {e}") from e
        _living.add(self)
        self._reader = threading.Thread(target=self._read_log, args=(echo,), daemon=True)
        self._reader.start()

    def _read_log(self, echo: bool) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(ValueError):  # stop has read the rest, and closed it
            for line in self.process.stderr:
                self.log.append(line.rstrip("\n"))
                if echo:
                    sys.stderr.write(line)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leaves no process. After Ctrl-C it may finish the epoch; a second one ends it."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.stop()
        self.kill()

    def lines(self) -> Iterator[str]:
        """The lines of its standard output."""
        assert self.process.stdout is not None
        yield from self.process.stdout
        self.process.wait()

    def interrupt(self) -> None:
        """Has it finish the epoch, save what is to be saved, and end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """Interrupts it, and waits until it has ended."""
        try:
            self.interrupt()
            self.process.communicate(timeout=_SECONDS_TO_STOP)
        except (subprocess.TimeoutExpired, KeyboardInterrupt, ValueError):
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends it at once, and its workers with it."""
        if os.getpid() != self._owner:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def check(self, interrupted_is_fine: bool = False) -> None:
        """Raises what the program says, where it failed."""
        status = self.process.wait()
        self._reader.join(5)
        if status == 0 or (status == _INTERRUPTED and interrupted_is_fine):
            return
        raise self._error(status)

    def _error(self, status: int) -> Error:
        log = list(self.log)
        starts = [i for i, line in enumerate(log) if line.startswith("starling: ")]
        if status > 0 and starts:
            text = " ".join(log[starts[-1]:])[len("starling: "):]
            return (Mistake if status == 2 else Failed)(text, log[:starts[-1]])
        if status < 0:
            how = f"was killed (signal {-status}, {signal.strsignal(-status)})"
            if status == -signal.SIGKILL:
                how += ": another process did that, or the system, for lack of memory"
            return Failed("starling " + how, log)
        return Failed(f"starling ended with status {status}", log)


def run(args: list[str]) -> str:
    """Runs the program to its end, and returns its standard output."""
    with Child(args) as child:
        out = "".join(child.lines())
        child.check()
    return out


def answer(args: list[str]) -> Any:
    """Runs a command, and returns the object that it writes."""
    return json.loads(run([*args, "--json", "-"]))


def main() -> None:
    """The program, as the command starling of an environment."""
    os.execv(binary(), ["starling", *sys.argv[1:]])


def _end_all() -> None:
    for child in list(_living):
        child.kill()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's
    os.register_at_fork(after_in_child=_living.clear)
