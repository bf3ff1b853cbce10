#!/usr/bin/env python3
"""Recorded jobs of running systems, put to the real dlrun. The scheduler's own account of a job (scontrol, the
host file) is read here by other means and is the truth. It never asks a scheduler of this machine."""

import datetime, json, os, pathlib, re, subprocess, sys, tempfile, unittest

HERE = pathlib.Path(__file__).parent
DLRUN = os.environ["DLRUN"]
QUIET = {"PATH": "/usr/bin:/bin"}


def variables(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


def dlrun(environment, answers, *words):
    """Where each program of `answers` prints a recorded file."""
    with tempfile.TemporaryDirectory() as folder:
        for program in ("scontrol", "qstat", "qconf"):
            script = pathlib.Path(folder, program)
            script.write_text(f"#!/bin/sh\ncat '{answers[program]}'\n" if program in answers else "#!/bin/sh\nexit 1\n")
            script.chmod(0o755)
        environment = {**environment, "PATH": f"{folder}:{QUIET['PATH']}"}
        done = subprocess.run([DLRUN, *words], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def allocation(environment, answers, *flags):
    code, out, err = dlrun(environment, answers, "allocation", "--json", *flags)
    if code != 0:
        raise AssertionError(err)
    return json.loads(out)


def numbers(text):
    out = []
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        out += range(int(low), int(high or low) + 1)
    return out


def names(text):
    out = []
    for prefix, inside in re.findall(r"([a-z0-9]+)(?:\[([0-9,-]+)\])?", text):
        width = len(re.split("[,-]", inside)[0]) if inside else 0
        out += [f"{prefix}{n:0{width}d}" for n in numbers(inside)] if inside else [prefix]
    return out


def blocks_of(text, job):
    """A job that is the last task of its array has the array's id: scontrol then prints all tasks."""
    blocks = re.split(r"(?m)^(?=JobId=)", text)
    return [b for b in blocks if re.match(rf"JobId={job} ", b) or f"HetJobId={job} " in b]


def truth(blocks):
    """Nodes in order with CPUs and GPUs, and the end, as scontrol show job -d tells them."""
    nodes = {}
    for block in blocks:
        listed = re.search(r"\n   NodeList=(\S+)", block)
        for name in names(listed.group(1)) if listed else []:
            nodes.setdefault(name, [0, []])
        for where, cpus, gres in re.findall(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=\d+ GRES=(\S*)", block):
            gpus = [n for idx in re.findall(r"IDX:([0-9,-]+)", gres) for n in numbers(idx)]
            for name in names(where):
                nodes[name][0] += len(numbers(cpus))
                nodes[name][1] += [str(n) for n in gpus]
    return nodes, re.search(r"EndTime=(\S+)", blocks[0]).group(1) + "Z"


class Slurm(unittest.TestCase):
    def test_every_recorded_job(self):
        paths = sorted((HERE / "slurm").glob("*.env"))
        self.assertGreater(len(paths), 50)
        for path in paths:
            job = re.sub(r"\.(batch|task\d+)\.env$", "", path.name)
            recorded = HERE / "slurm" / f"{job}.scontrol-d.txt"
            with self.subTest(path.name):
                environment = variables(path)
                found = allocation(environment, {"scontrol": recorded})
                blocks = blocks_of(recorded.read_text(), environment["SLURM_JOB_ID"])
                nodes, end = truth(blocks)
                self.assertEqual([n["host"] for n in found["nodes"]], list(nodes))
                self.assertEqual([n["cpus"] for n in found["nodes"]], [c for c, _ in nodes.values()])
                self.assertEqual([n["gpus"] for n in found["nodes"]], [g for _, g in nodes.values()])
                self.assertEqual(found["end_time"], end)
                self.assertEqual(found["job_id"], environment["SLURM_JOB_ID"])
                self.assertEqual(found["array_index"], int(environment["SLURM_ARRAY_TASK_ID"])
                                 if "SLURM_ARRAY_TASK_ID" in environment else None)
                tasks = sum(int(re.search(r"NumTasks=(\d+)", block).group(1)) for block in blocks)
                if "SLURM_HET_SIZE" not in environment:  # a step over all nodes may have fewer tasks than its job
                    tasks = int(environment.get("SLURM_STEP_NUM_TASKS", tasks))
                self.assertEqual(sum(n["slots"] for n in found["nodes"]), tasks)


class TorqueWrapper(unittest.TestCase):
    def test_slurm_wins_over_what_the_wrapper_sets(self):
        for path in sorted((HERE / "torque-wrapper").glob("*.env")):
            with self.subTest(path.name):
                environment = variables(path)
                found = allocation(environment, {})
                self.assertEqual(found["scheduler"], "slurm")
                self.assertEqual([n["host"] for n in found["nodes"]], names(environment["SLURM_JOB_NODELIST"]))
                self.assertEqual(any(" too (" in line for line in found["evidence"]),
                                 "PBS_JOBID" in environment or "PBS_NODEFILE" in environment)


class GridEngine(unittest.TestCase):
    def test_host_files(self):
        for job in ("job1", "job2"):
            hostfile = HERE / "gridengine" / f"{job}.pe_hostfile"
            environment = {**variables(HERE / "gridengine" / f"{job}.env"), "PE_HOSTFILE": str(hostfile)}
            found = allocation(environment, {})
            lines = [line.split() for line in hostfile.read_text().splitlines()]
            self.assertEqual([(n["host"], n["slots"]) for n in found["nodes"]], [(l[0], int(l[1])) for l in lines])
            self.assertEqual((found["scheduler"], found["job_id"]), ("gridengine", environment["JOB_ID"]))
            self.assertIsNone(found["array_index"])

    def test_the_end_is_told_by_the_job_and_its_queue(self):
        """The start and the sooner of the hard limit and the soft one, which may be the job's or its queue's."""
        folder = HERE / "gridengine"
        for job, limit in (("fill", 300), ("array5", 90), ("serial", None)):
            with self.subTest(job):
                environment = variables(folder / f"{job}.env")
                hostfile = folder / f"{job}.pe_hostfile"
                if hostfile.exists():
                    environment["PE_HOSTFILE"] = str(hostfile)
                found = allocation(environment, {"qstat": folder / f"{job}.qstat.xml", "qconf": folder / f"{job}.qconf.txt"})
                start = int(re.search(r"<JAT_start_time>(\d+)<", (folder / f"{job}.qstat.xml").read_text()).group(1))
                told = found["end_time"] and datetime.datetime.fromisoformat(found["end_time"].replace("Z", "+00:00")).timestamp()
                self.assertEqual(told, limit and start + limit, found["evidence"])
                self.assertEqual(found["array_index"], 5 if job == "array5" else None)
                self.assertEqual(sum(node["slots"] for node in found["nodes"]) if hostfile.exists() else 10, 10)
                self.assertEqual((found["scheduler"], found["job_id"]), ("gridengine", environment["JOB_ID"]))
        # A queue that says less leaves the job's own limit; one whose limits are all there is must tell them.
        environment = variables(folder / "array5.env")
        found = allocation(environment, {"qstat": folder / "array5.qstat.xml"})
        self.assertIsNotNone(found["end_time"])
        found = allocation(variables(folder / "serial.env"), {"qstat": folder / "serial.qstat.xml"})
        self.assertIsNone(found["end_time"])
        self.assertIn("the end is unknown", "".join(found["evidence"]))


class OpenPbs(unittest.TestCase):
    def test_jobs_with_their_node_files(self):
        for path in sorted((HERE / "openpbs").glob("env_*.txt")):
            with self.subTest(path.name), tempfile.NamedTemporaryFile("w") as nodefile:
                text = path.read_text()
                # The first account of the job: environment, then the node file with a line of `ls` above it.
                env_text, rest = text.split("## nodefile", 1)
                lines = rest.split("\n##", 1)[0].splitlines()[1:]
                lines = [line for line in lines if line and not line.startswith("-")]
                nodefile.write("\n".join(lines) + "\n")
                nodefile.flush()
                environment = dict(re.findall(r"(?m)^(PBS_\w+)=(.*)$", env_text))
                environment["PBS_NODEFILE"] = nodefile.name
                found = allocation(environment, {})
                self.assertEqual([(n["host"], n["slots"]) for n in found["nodes"]],
                                 [(host, lines.count(host)) for host in dict.fromkeys(lines)])
                self.assertEqual((found["scheduler"], found["job_id"]), ("pbs", environment["PBS_JOBID"]))

    def test_a_running_job_by_qstat(self):
        with tempfile.NamedTemporaryFile("w") as nodefile:
            nodefile.write("pbsx1.pbsx.test\n" * 2 + "pbsx2.pbsx.test\n" * 2)
            nodefile.flush()
            found = allocation({"PBS_JOBID": "26.pbsxsrv", "PBS_NODEFILE": nodefile.name},
                               {"qstat": HERE / "openpbs" / "qstat_f_running.json"})
        self.assertEqual([(n["host"], n["slots"], n["cpus"], n["gpus"]) for n in found["nodes"]],
                         [("pbsx1.pbsx.test", 2, 2, ["0"]), ("pbsx2.pbsx.test", 2, 2, ["0"])])
        self.assertEqual(found["end_time"], "2026-11-27T21:08:38Z")


class Documented(unittest.TestCase):
    """Jobs of machines whose documentation says what a job finds there; `source` says where. Written from these facts, not recorded."""

    def test_jobs_of_well_documented_machines(self):
        paths = sorted((HERE / "documented").glob("*.json"))
        self.assertEqual([path.stem for path in paths], ["alps", "aurora", "frontier", "lumi", "perlmutter", "polaris"])
        for path in paths:
            with self.subTest(path.stem), tempfile.TemporaryDirectory() as folder:
                job = json.loads(path.read_text())
                environment, answers = dict(job["environment"]), {}
                for program, text in {"scontrol": "\n".join(job.get("scontrol", [])), "qstat": json.dumps(job.get("qstat"))}.items():
                    if program in job:
                        answers[program] = pathlib.Path(folder, program + ".txt")
                        answers[program].write_text(text)
                if "nodefile" in job:
                    environment["PBS_NODEFILE"] = f"{folder}/nodefile"
                    pathlib.Path(folder, "nodefile").write_text("".join(f"{line}\n" for line in job["nodefile"]))
                expect = job["expect"]
                found = allocation(environment, answers)
                self.assertEqual([{key: node[key] for key in ("host", "cpus", "gpus")} for node in found["nodes"]], expect["nodes"])
                self.assertEqual(found["nodes"][0].get("gpu_vendor"), expect.get("vendor"))
                self.assertEqual(found["end_time"], "2026-11-27T22:46:35Z")
                self.is_planned(environment, answers, expect)

    def is_planned(self, environment, answers, expect):
        gpus = str(expect.get("gpus-per-node") or len(expect["nodes"][0]["gpus"]))
        words = ("plan", "--json", "--gpus-per-node", gpus, "--framework", "jax", "--", "python3", "train.py")
        code, out, err = dlrun(environment, answers, *words)
        self.assertEqual(code, 0, err)
        plan = json.loads(out)
        self.assertEqual(len(plan["ranks"]), 2 * int(gpus))
        for rank, variables_of_rank in expect.get("ranks", {}).items():
            self.assertEqual({name: plan["ranks"][int(rank)]["environment"].get(name) for name in variables_of_rank}, variables_of_rank)
        self.assertEqual({name: plan["ranks"][0]["defaults"].get(name) for name in expect["defaults"]}, expect["defaults"])
        _, out, err = dlrun(environment, answers, "plan", "--explain", *words[2:])
        settings = {line.split()[0]: line for line in out.splitlines()}
        self.assertIn(expect["site"], settings["site"], err)
        self.assertEqual(settings["launch.via"].split()[1], expect.get("via", "auto"))


if __name__ == "__main__":
    unittest.main()
