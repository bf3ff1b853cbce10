#!/usr/bin/python3
"""A program of ps-lite's kind (MXNet, BytePS) as launchers see it: all call the scheduler at DMLC_PS_ROOT_URI, which answers
when everybody is there; scheduler and servers never end by themselves."""
import os
import socket
import time

role = os.environ["DLRUN_ROLE"]
assert role == os.environ["DMLC_ROLE"]
root = (os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"]))
workers, servers = int(os.environ["DMLC_NUM_WORKER"]), int(os.environ["DMLC_NUM_SERVER"])
if role == "scheduler":
    assert root[0] == socket.gethostname(), root
    with socket.create_server(("", root[1])) as listener:
        calls = [listener.accept()[0] for _ in range(workers + servers)]
        heard = sorted(call.makefile().readline().strip() for call in calls)
        assert heard == ["server"] * servers + ["worker"] * workers, heard
        for call in calls:
            call.sendall(b"everybody is there\n")
        time.sleep(1e6)
while True:
    try:
        with socket.create_connection(root) as call:
            call.sendall(f"{role}\n".encode())
            said = call.makefile().readline().strip()
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
print(f"{role}: {said}", flush=True)
while role == "server":
    time.sleep(60)
