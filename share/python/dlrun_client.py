"""Reports the progress of a training script to dlrun, and receives requests to save. One file, no dependencies: copy it
beside your script, or put share/python on PYTHONPATH. Outside dlrun every call does nothing, so the script also runs alone.

    import dlrun_client

    with dlrun_client.connect() as dlrun:
        for step in range(first, steps):
            loss = train_one_step()
            dlrun.report(step=step + 1, steps=steps, loss=loss)
            if dlrun.checkpoint_requested():
                with dlrun.saving(step + 1):        # reports that it is saved, and how long it took
                    save_checkpoint()
                dlrun.stop_if_requested()           # exits with 75: "I have saved, run me again"
        dlrun.result(test_accuracy=evaluate())

Ranks that train together must stop at the same step. Give checkpoint_requested() a function that tells every rank
whether any of them was asked:

    def any_rank(asked):
        flag = torch.tensor([float(asked)])
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
        return bool(flag.item())

    if dlrun.checkpoint_requested(agree=any_rank): ...

A program that wants to know why its ranks are ended, and in a further attempt (launch.retries) what is different:

    def changed(change):
        if change.ending:               # these ranks will be ended: SIGTERM follows at once, SIGKILL after launch.grace
            flush_logs(change.reason)   # "rank 3 on n2: killed by SIGKILL (9)"
        else:                           # an attempt after that one, with change.size ranks and without change.left_out
            scale_learning_rate(change.size / change.previous_size)

    dlrun.on_world_changed(changed)

Every call of checkpoint_requested() calls `agree`, on all ranks alike. If dlrun is gone, nothing is raised: training
continues.
"""
import collections
import contextlib
import faulthandler
import json
import math
import os
import signal
import socket
import sys
import threading
import time

# `reason`: why ranks were ended; `ending`: True if these ranks will be ended, False if those of the attempt before were.
Change = collections.namedtuple("Change", "reason ending attempt size previous_size left_out")

RUN_ME_AGAIN = 75  # the exit code of a program that has saved and wants to be continued


def connect():
    """The connection of this rank to its dlrun agent, by the variables that dlrun sets for every rank."""
    return Client(os.environ.get("DLRUN_CONTROL", ""), os.environ.get("DLRUN_CHECKPOINT_REQUEST", ""),
                  int(os.environ.get("DLRUN_RANK", os.environ.get("RANK", "0"))))


class Client:
    def __init__(self, control, request_file, rank):
        self._request_file, self._answered_file = request_file, None
        self._save = self._stop = self._agreed_stop = False
        self._received, self._waiting = b"", b""
        self._last_progress = 0.0
        self._world_changed = None
        self._socket = _open(control)
        self._send({"rank": rank})
        self._old_handler = None
        _write_stacks_on_signal(control)
        if threading.current_thread() is threading.main_thread() and (control or request_file):
            self._old_handler = signal.signal(signal.SIGTERM, self._on_term)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def report(self, step, steps=None, epoch=None, epochs=None, loss=None, every=0.25, **more):
        """Reports progress. Call it after each step: at most one report per `every` seconds is sent."""
        if self._world_changed is not None:
            self._listen()
        now = time.monotonic()
        if now - self._last_progress < every:
            return
        self._last_progress = now
        values = {"step": step, "steps": steps, "epoch": epoch, "epochs": epochs, "loss": loss, **more}
        self._send({key: _plain(value) for key, value in values.items() if value is not None})

    def data(self, **facts):
        """What is trained on, for the record and for `dlrun diff`: fingerprint="ab12", samples=60000. Of rank 0 it counts."""
        self._send({"data": {key: _plain(value) for key, value in facts.items()}})

    def on_world_changed(self, callback):
        """Has callback(Change) called: at once in an attempt that follows a failed one, and from report() or
        checkpoint_requested() when dlrun is about to end these ranks because another has failed. It ends them all the same."""
        self._world_changed = callback
        attempt = int(os.environ.get("DLRUN_ATTEMPT", "1"))
        if attempt > 1 and "DLRUN_PREVIOUS_END" in os.environ:
            left_out = os.environ.get("DLRUN_LEFT_OUT", "")
            callback(Change(os.environ["DLRUN_PREVIOUS_END"], False, attempt, _size(),
                            int(os.environ.get("DLRUN_PREVIOUS_SIZE", _size())), left_out.split(",") if left_out else []))

    def checkpoint_requested(self, agree=None):
        """True if a checkpoint is requested. `agree`: see above; a request to stop is agreed on as well."""
        self._listen()
        asked, stop = self._save or self._stop, self._stop
        if agree is not None:
            asked = bool(agree(asked))
            stop = bool(agree(stop)) if asked else False
        self._agreed_stop = stop
        self._save = False
        return asked

    @property
    def stop_requested(self):
        """Whether the run ends after that checkpoint, as checkpoint_requested() last returned."""
        return self._agreed_stop

    @contextlib.contextmanager
    def saving(self, step):
        """A context for the code that writes a checkpoint: reports the checkpoint, with its time, once it is written."""
        began = time.monotonic()
        yield
        self.saved(step, time.monotonic() - began)

    def saved(self, step, seconds):
        """A complete checkpoint of this step is on disk. Call it only then: dlrun ends runs that have one."""
        self._send({"saved": step, "seconds": round(seconds, 3)})

    def stop_if_requested(self):
        """Ends the program with the code that means "saved: run me again", where that was asked for."""
        if self.stop_requested:
            self.close()
            sys.exit(RUN_ME_AGAIN)

    def result(self, **values):
        """What the run achieved, for its record; it also says that the program is done."""
        self._send({"result": {key: _plain(value) for key, value in values.items()}})

    def close(self):
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.settimeout(1)
                self._socket.sendall(self._waiting)
            self._socket.close()
            self._socket = None
        if self._old_handler is not None:
            signal.signal(signal.SIGTERM, self._old_handler)
            self._old_handler = None

    def _on_term(self, number, frame):
        self._stop = True  # dlrun, or the scheduler, wants the end: save first

    def _listen(self):
        self._push()
        while self._socket is not None:
            try:
                got = self._socket.recv(4096)
            except BlockingIOError:
                break
            except OSError:
                got = b""
            if not got:
                self._socket = None
            self._received += got
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            self._take(line)
        self._probe_file()

    def _take(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict) and "ending" in message and self._world_changed is not None:
            attempt = int(os.environ.get("DLRUN_ATTEMPT", "1"))
            self._world_changed(Change(message["ending"], True, attempt, _size(), _size(), []))
        if isinstance(message, dict) and "checkpoint" in message:
            self._save = True
            self._stop = self._stop or message.get("stop") is True

    def _probe_file(self):
        try:
            changed = os.stat(self._request_file).st_mtime_ns
            if changed == self._answered_file:
                return
            with open(self._request_file) as file:
                text = file.read().strip()
        except OSError:
            return  # usually it does not exist
        self._answered_file = changed
        self._save = True
        self._stop = self._stop or text != "go on"

    def _send(self, message):
        if self._socket is not None and len(self._waiting) < 1 << 18:
            self._waiting += json.dumps(message).encode() + b"\n"
            self._push()

    def _push(self):
        while self._socket is not None and self._waiting:
            try:
                self._waiting = self._waiting[self._socket.send(self._waiting):]
            except BlockingIOError:
                return
            except OSError:
                self._socket = None


def _size():
    return int(os.environ.get("DLRUN_SIZE", "1"))


def _open(path):
    if not path:
        return None
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(5)
        connection.connect(path)
        connection.setblocking(False)
        return connection
    except OSError:
        return None


def _write_stacks_on_signal(control):
    """Makes Python write where it is (dlrun stacks) into a file beside the control socket, by a signal that nothing uses."""
    number = signal.SIGRTMAX - 3
    if not control or signal.getsignal(number) is not signal.SIG_DFL:
        return
    try:
        path = os.path.join(os.path.dirname(control), f"python-{os.getpid()}-{number}")
        faulthandler.register(number, file=open(path, "w"), all_threads=True)
    except (OSError, RuntimeError, AttributeError):
        pass  # no file may be made there; nothing else depends on it


def _plain(value):
    """Numbers of NumPy and PyTorch as Python's own. A loss that diverged is no JSON: it is sent as null."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
