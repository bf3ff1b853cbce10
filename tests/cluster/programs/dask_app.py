#!/usr/bin/python3
"""A Dask program: Client() finds the scheduler by itself; every worker computes a part, on its own host."""
import os
import socket
import sys

from distributed import Client


def main():
    workers = int(sys.argv[1])
    with Client() as client:
        client.wait_for_workers(workers)
        hosts = client.run(socket.gethostname)
        parts = client.map(lambda begin: sum(range(begin, begin + 1000)), range(0, 40000, 1000))
        total = client.submit(sum, parts).result()
        print(f"{len(hosts)} workers on {' '.join(sorted(set(hosts.values())))} make {total}", flush=True)
    assert total == sum(range(40000))
    assert os.environ["DLRUN_ROLE"] == "driver"


if __name__ == "__main__":
    main()
