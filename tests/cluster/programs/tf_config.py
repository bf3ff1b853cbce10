#!/usr/bin/python3
"""Reads TF_CONFIG as TensorFlow does, checks it against what dlrun says otherwise, and listens where it is told to. A role that
serves waits for ever."""
import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
assert (role, index) == (os.environ["DLRUN_ROLE"], int(os.environ["DLRUN_TASK_INDEX"])), config
if role == "evaluator":
    assert "evaluator" not in config["cluster"], "an evaluator is no part of its cluster"
else:
    host, _, port = config["cluster"][role][index].rpartition(":")
    assert host == socket.gethostname(), f"told to be on {host}, and is on {socket.gethostname()}"
    listener = socket.create_server(("", int(port)))
shape = " ".join(f"{name}:{len(tasks)}" for name, tasks in sorted(config["cluster"].items()))
print(f"{role} {index} in {shape}", flush=True)
while role == "ps":
    time.sleep(60)
