#!/usr/bin/python3
"""A TensorFlow 1.x parameter-server program as launchers see it: its flags, the rules of its ClusterSpec, servers that join()
for ever, workers that end. Workers add up a number on every server; the chief (worker 0) reads what came out."""
import argparse
import os
import socket
import socketserver
import threading
import time


def address_of(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


class Adder(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with self.server.lock:  # a thread for each call: an addition of two at once would be one
                self.server.total += int(line)
                total = self.server.total
            self.wfile.write(f"{total}\n".encode())


def serve(port):
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    with socketserver.ThreadingTCPServer(("", port), Adder) as server:
        server.total, server.lock = 0, threading.Lock()
        server.serve_forever()


def ask(address, number):
    while True:
        try:
            with socket.create_connection(address) as call:
                call.sendall(f"{number}\n".encode())
                return int(call.makefile().readline())
        except ConnectionRefusedError:
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    options = parser.parse_args()
    cluster = {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
    every = cluster["ps"] + cluster["worker"]
    assert len(set(every)) == len(every), "two tasks with one address"
    host, port = address_of(cluster[options.job_name][options.task_index])
    assert host == socket.gethostname(), f"told to be on {host}, and is on {socket.gethostname()}"
    gpus = [gpu for gpu in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if gpu]
    assert len(gpus) == (1 if options.job_name == "worker" else 0), gpus
    if options.job_name == "ps":
        serve(port)
    with socket.create_server(("", port)):
        for server in cluster["ps"]:
            ask(address_of(server), options.task_index + 1)
        wanted = sum(range(1, len(cluster["worker"]) + 1))
        while any(ask(address_of(server), 0) < wanted for server in cluster["ps"]):
            time.sleep(0.02)
    print(f"worker {options.task_index} on {host} with GPU {gpus[0]}: {len(cluster['ps'])} servers say {wanted}", flush=True)


if __name__ == "__main__":
    main()
