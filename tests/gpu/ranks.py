"""Ranks of a training or a benchmark under a small PMI-1 service of the test's own: it starts them, answers their PMI requests
and, unlike a launcher, leaves the others alone when one dies, so that what they say about it can be seen."""
import os
import signal
import socket
import subprocess
import threading


class Ranks:
    def __init__(self, command, count, logs, environment=None, of_rank=lambda rank: {}):
        """`of_rank`: more variables of a rank, by its number."""
        self.count, self.pairs, self.arrived = count, {}, 0
        self.condition = threading.Condition()
        self.processes, self.logs = [], []
        for rank in range(count):
            mine, theirs = socket.socketpair()
            log = logs / f"rank-{rank}.log"
            self.logs.append(log)
            variables = {**os.environ, "DLRUN_COMM": "pmi", "PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank),
                         "PMI_SIZE": str(count), "DLRUN_RANK": str(rank), "DLRUN_SIZE": str(count),
                         "DLRUN_LOCAL_RANK": str(rank), **(environment or {}), **of_rank(rank)}
            with log.open("w") as out:
                self.processes.append(subprocess.Popen(command, env=variables, pass_fds=[theirs.fileno()], stdout=out,
                                                       stderr=subprocess.STDOUT))
            theirs.close()
            threading.Thread(target=self.serve, args=(mine,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rw") as stream:
            for line in stream:
                head, _, value = line.rstrip("\n").partition(" value=")
                fields = dict(word.split("=", 1) for word in head.split())
                answer = self.answer(fields, value)
                if answer is None:
                    return
                stream.write(answer + "\n")
                stream.flush()

    def answer(self, fields, value):
        match fields["cmd"]:
            case "init":
                return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
            case "get_my_kvsname":
                return "cmd=my_kvsname kvsname=test rc=0"
            case "put":
                with self.condition:
                    self.pairs[fields["key"]] = value
                return "cmd=put_result rc=0 msg=success"
            case "get":
                return f"cmd=get_result rc=0 msg=success value={self.pairs[fields['key']]}"
            case "barrier_in":
                self.barrier()
                return "cmd=barrier_out rc=0"
            case "finalize":
                return "cmd=finalize_ack rc=0"
        return None  # abort: the rank ends by itself

    def barrier(self):
        with self.condition:
            self.arrived += 1
            turn = (self.arrived - 1) // self.count + 1
            self.condition.notify_all()
            self.condition.wait_for(lambda: self.arrived >= turn * self.count)

    def kill(self, rank):
        self.processes[rank].send_signal(signal.SIGKILL)

    def wait(self, seconds):
        """The exit codes; ranks that go on after so long are killed, and have None."""
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(timeout=seconds))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                codes.append(None)
        return codes

    def text(self, rank):
        return self.logs[rank].read_text()


if __name__ == "__main__":  # ranks.py COUNT COMMAND...: runs them and prints what they wrote
    import pathlib
    import sys
    import tempfile
    world = Ranks(sys.argv[2:], int(sys.argv[1]), pathlib.Path(tempfile.mkdtemp(prefix="ranks-")))
    ended = world.wait(300)
    for number in range(world.count):
        print(world.text(number), end="")
    sys.exit(0 if ended == [0] * world.count else 1)
