"""Run directories and chains as dlrun writes them, of any size, for tests of the report: nothing is started."""
import datetime
import json
import math
import os
import random

BEGAN = datetime.datetime(2026, 11, 2, 8, 0, tzinfo=datetime.timezone.utc).timestamp()


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(seconds * 1000) % 1000:03d}Z"


def write(path, value):
    with open(path, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value, indent=1))


def plan(name, ranks, per_node=8):
    nodes = (ranks + per_node - 1) // per_node
    return {"schema": "dlrun.plan/1", "name": name, "job_id": "20261102-080000-abcd", "attempt": 1, "framework": "builtin", "mpi": "pmix",
            "nodes": [{"index": n, "host": f"gpu{n + 1:04d}", "address": None} for n in range(nodes)],
            "ranks": [{"rank": r, "role": "worker", "task_index": r, "node": r // per_node, "local_rank": r % per_node,
                       "gpus": [str(r % per_node)], "argv": ["dlrun-train"]} for r in range(ranks)]}


def metrics(lines, first_step, began, seconds_per_step, every=50, extra=False):
    """Text of `lines` lines: loss falls, one line has a spike that no plot may lose."""
    noise, out = random.Random(first_step), []
    for i in range(lines):
        step = first_step + i * every
        loss = 2.3 * math.exp(-step / 60000) + 0.15 + 0.05 * noise.random()
        line = (f'{{"step":{step},"steps":500000,"epoch":{1 + step // 5000},"epochs":100,"accuracy":{1 - loss / 2.6:.6f},"images_per_s":{11000 + 900 * noise.random():.1f},'
                f'"learning_rate":{0.1 * math.cos(step / 330000) ** 2:.9f},"time":{began + (i + 1) * every * seconds_per_step:.3f},"loss":{loss:.6f}')
        if extra:
            line += f',"gpu_utilization":{0.9 + 0.08 * noise.random():.3f},"gpu_memory_bytes":{int(6e10 + 1e9 * noise.random())},"power_watts":{5200 + 400 * noise.random():.0f}'
        out.append(line + "}\n")
    return "".join(out)


def step_times(ranks, count, began, seconds, slow=5):
    noise = random.Random(3)
    for i in range(count):
        times = [round(0.21 + 0.006 * noise.random() + (0.09 if rank == slow and i > count // 3 else 0), 4) for rank in range(ranks)]
        yield {"time": utc(began + (i + 1) * seconds / (count + 1)), "event": "step_times", "seconds": times}


def make_run(folder, ranks=8, name="resnet50", seconds=14000, lines=200, first_step=50, began=BEGAN, exit_code=0, fail=False, heat=40, extra=True,
             job=None, steps_seconds=0.22):
    os.makedirs(folder)
    write(f"{folder}/plan.json", plan(name, ranks))
    write(f"{folder}/spec.json", {"schema": "dlrun.job/1", "name": name, "framework": "builtin", "environment": {"set": {"TOKEN": "not-for-everybody"}},
                                  "resources": {"nodes": (ranks + 7) // 8, "gpus-per-node": 8}, "train": {"model": "resnet50", "batch": 256, "epochs": 90}})
    events = [{"time": utc(began), "event": "planned", "attempt": 1, "ranks": ranks, "nodes": (ranks + 7) // 8}]
    attempts, at = [], began
    if fail:
        at = began + seconds * 0.3
        reason = f"worker 3 (rank 3) on gpu0001: killed by SIGBUS (7): </script><script>alert(1)</script>"
        events += [{"time": utc(at - 30), "event": "failed", "rank": 3, "code": 135, "reason": "killed by SIGBUS (7)", "host": "gpu0001"},
                   {"time": utc(at), "event": "ended", "exit_code": 135, "reason": reason}, {"time": utc(at + 1), "event": "planned", "attempt": 2, "ranks": ranks}]
        attempts.append({"attempt": 1, "exit_code": 135, "reason": reason, "ranks": [],
                         "first_failure": {"rank": 3, "role": "worker", "task_index": 3, "host": "gpu0001", "code": 135, "reason": "killed by SIGBUS (7)",
                                           "cause": "NVRM: Xid 79: GPU has fallen off the bus", "last_lines": ["step 4100 loss 1.02", "NVRM: Xid 79: GPU has fallen off the bus", "</pre></script><b>"]},
                         "time": {"start": 40, "useful": 3500, "checkpoint": 60, "lost": 560, "idle": 40, "total": 4200}})
    for i in range(6):
        events.append({"time": utc(at + (i + 1) * (began + seconds - at) / 7), "event": "report", "rank": 0,
                       "report": {"saved": first_step + i * 1000, "seconds": 8.2, "held": 0.4}})
    events += list(step_times(ranks, heat, at, began + seconds - at))
    reason = "done" if exit_code == 0 else "stopped with a valid checkpoint: run the same command again to go on"
    if exit_code == 75:
        events.append({"time": utc(began + seconds - 60), "event": "save_and_stop", "seconds_left": 120})
    events.append({"time": utc(began + seconds), "event": "ended", "exit_code": exit_code, "reason": reason})
    length = began + seconds - at
    attempts.append({"attempt": len(attempts) + 1, "exit_code": exit_code, "reason": reason, "first_failure": None,
                     "ranks": [{"rank": r, "role": "worker", "task_index": r, "host": f"gpu{r // 8 + 1:04d}", "processors": [2 * (r % 8), 2 * (r % 8) + 1],
                                "end": "exit code 0" if r != 7 or not fail else "killed by SIGTERM (15)", "code": 0 if r != 7 or not fail else 143} for r in range(ranks)],
                     "time": {"start": 35, "useful": length - 115, "checkpoint": 50, "lost": 0, "idle": 30, "total": length}})
    total = {part: sum(each["time"][part] for each in attempts) for part in ("start", "useful", "checkpoint", "lost", "idle", "total")}
    write(f"{folder}/events.jsonl", "".join(json.dumps(event) + "\n" for event in events))
    write(f"{folder}/metrics.jsonl", metrics(lines, first_step, began + 40, steps_seconds, extra=extra))
    write(f"{folder}/record.json", {"schema": "dlrun.record/1", "name": name, "job_id": "20261102-080000-abcd", "framework": "builtin", "scheduler": "slurm",
                                    "scheduler_job_id": job, "run_directory": folder, "began": utc(began), "ended": utc(began + seconds), "exit_code": exit_code,
                                    "reason": reason, "result": {"test_accuracy": 0.7612, "test_loss": 0.981, "steps": first_step + lines * 50} if exit_code == 0 else None,
                                    "last_progress": {"step": first_step + (lines - 1) * 50, "steps": 500000}, "time": total, "attempts": attempts,
                                    "provenance": {"dlrun": "0.1.0", "compiler": "GNU 12.2.0", "system": "Linux 6.1.0 x86_64", "host": "gpu0001",
                                                   "working_directory": "/project/flowers", "adapter": "/opt/dlrun/share/dlrun/frameworks/builtin.yaml",
                                                   "git": {"commit": "0123abcd", "changed_files": 2}}})
    return total


def make_chain(folder, links=10, lines=1000, ranks=8, name="imagenet", state="done"):
    """A chain whose links each do again a tenth of what the one before did."""
    os.makedirs(folder)
    began, ledger, per_link = BEGAN, [], lines
    for number in range(1, links + 1):
        last = number == links
        run, seconds = f"{folder}/link-{number:04d}", 14000
        first = 50 + (number - 1) * int(per_link * 45)
        time = make_run(run, ranks, name, seconds, per_link, first, began, 0 if last else 75, fail=number == 4, heat=10, job=str(4700 + number), steps_seconds=13000 / (per_link * 50))
        ledger.append({"number": number, "job_id": str(4700 + number), "run_directory": run, "end": "done" if last else "again", "exit_code": 0 if last else 75,
                       "reason": "done" if last else "stopped with a valid checkpoint", "began": utc(began), "ended": utc(began + seconds), "seconds": seconds, "time": time,
                       "progress": {"step": first + per_link * 50, "steps": 500000}, "checkpoint_mark": "", "saved": True})
        began += seconds + 900 * number
    write(f"{folder}/chain.json", {"schema": "dlrun.chain/1", "name": name, "scheduler": "slurm", "mode": "resubmit", "max_links": 12, "retries": 0, "state": state,
                                   "reason": "", "script": "job.sh", "search_path": "/usr/bin:/bin", "queued_job": "", "checkpoint_files": "", "links": ledger})
