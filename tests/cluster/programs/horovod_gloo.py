#!/usr/bin/python3
"""A rendezvous as that of Horovod's Gloo ranks: every rank puts its address into the store and gets those of all others, in
the scopes of the job, of its node and of its local rank across nodes; the numbers must fit the hosts."""
import os
import time
import urllib.error
import urllib.request

NUMBERS = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
rank, size, local_rank, local_size, cross_rank, cross_size = (int(os.environ["HOROVOD_" + name]) for name in NUMBERS)
host = os.environ["HOROVOD_HOSTNAME"]
store = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}"


def call(method, key, body=None):
    while True:
        try:
            request = urllib.request.Request(f"{store}/{key}", method=method, data=body)
            with urllib.request.urlopen(request) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as problem:
            if problem.code != 404:
                raise
        except urllib.error.URLError as problem:
            if not isinstance(problem.reason, ConnectionRefusedError):
                raise
        time.sleep(0.02)


def rendezvous(scope, own, count, value):
    call("PUT", f"{scope}/{own}", value.encode())
    return [call("GET", f"{scope}/{other}") for other in range(count)]


everybody = rendezvous("global", rank, size, f"{host} {rank}")
here = rendezvous(f"local_{host}", local_rank, local_size, host)
across = rendezvous(f"cross_{local_rank}", cross_rank, cross_size, host)
assert [int(entry.split()[1]) for entry in everybody] == list(range(size)), everybody
assert here == [host] * local_size, here
assert [entry.split()[0] for entry in everybody].count(host) == local_size, everybody
assert len(set(across)) == cross_size, across
print(f"rank {rank} of {size} met the others: {local_size} on {host}, {cross_size} across", flush=True)
