#!/usr/bin/env python3
"""Every started rank against plan.json: environment, defaults, argv, folder, processors, limits, descriptors, signals, ports,
under each MPI protocol, with and without a prolog, in a container, by the node script alone, and in a further attempt."""
import glob
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "delivery"))
import delivery  # noqa: E402  pylint: disable=wrong-import-position

DUMP, DUMP_MPI = os.environ["DELIVERY_DUMP"], os.environ["DELIVERY_DUMP_MPI"]  # set by ctest


class Delivered(support.Case):
    def setUp(self):
        super().setUp()
        self.environment.pop("OMP_NUM_THREADS", None)
        self.environment.update(delivery.USER)
        self.made = itertools.count()

    def job(self, program=DUMP, environment="", **launch):
        lines = "".join(f", {key}: {value}" for key, value in launch.items())
        return self.write("job.yaml", f"framework: delivery\ncommand: ['{program}', \"it's\"]\nresources: {{tasks-per-node: 2}}\n"
                          "parallel: {tensor: 2}\n"
                          f"environment:\n{delivery.JOB_ENVIRONMENT}{environment}launch: {{grace: 2s{lines}}}\n")

    def modules(self):
        folder = f"{self.folder}/modules/tool"
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(f"{folder}/1.0").write_text("#%Module1.0\nsetenv P_MODULE loaded\n")

    def run_job(self, job, mpi="none", *flags, code=0, adapter=delivery.ADAPTER, **options):
        """(run directory, folder of dumps) of one run."""
        number = next(self.made)
        self.write("delivery.yaml", adapter.format(mpi=mpi))
        dumps = f"{self.folder}/dumps-{number}"
        os.makedirs(dumps)
        self.environment["DUMP_TO"] = dumps
        found, _, err = self.dlrun("--quiet", "--framework-dir", self.folder, "--run-dir", f"run-{number}", *flags, job, **options)
        self.assertEqual(found, code, err)
        return f"{self.folder}/run-{number}", dumps

    def is_delivered(self, run, dumps, plan="plan.json", **how):
        delivered = delivery.Delivery(f"{run}/{plan}", dumps, dict(self.environment), run=run, **how)
        self.assertEqual(delivered.differences(), [])
        return delivered

    def by_hand(self, run, dumps, **how):
        shutil.rmtree(dumps)
        os.makedirs(dumps)
        (script,) = glob.glob(f"{run}/nodes/0001-*.sh")
        done = subprocess.run(["bash", script], env=self.environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.is_delivered(run, dumps, by_hand=True, **how)

    PROLOG = {"D_PROLOG": "prolog", "P_SETUP": "set up", "P_MODULE": "loaded"}

    def prolog(self):
        self.modules()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{self.folder}/env"], check=True)
        lines = ", ".join(f'"{line}"' for line in delivery.setup_lines())
        return f"  module-paths: [modules]\n  modules: [tool/1.0]\n  activate: venv:env\n  setup: [{lines}]\n"

    def with_prolog(self, run, dumps, **how):
        """What modules and activation set beside P_MODULE is theirs: taken from the ranks, where all have the same."""
        told = delivery.Delivery(f"{run}/plan.json", dumps, {}, run=run)
        env = told.ranks[0][1]["environment"]
        self.assertEqual(env.get("VIRTUAL_ENV"), f"{self.folder}/env")
        self.assertEqual(env.get("LOADEDMODULES"), "tool/1.0")
        self.assertTrue(env["PATH"].startswith(f"{self.folder}/env/bin:"))
        theirs = {name: value for name, value in env.items() if name not in self.environment and not name.startswith("DLRUN_")
                  and name.startswith(("VIRTUAL_ENV", "PS1", "MODULE", "LOADEDMODULES", "_LMFILES_", "__Modules", "__MODULES", "BASH_", "MANPATH", "LMOD"))}
        return self.is_delivered(run, dumps, prolog={**self.PROLOG, **theirs, "PATH": env["PATH"]}, **how)

    def test_what_is_staged_is_at_the_variables_and_a_staged_environment_is_activated(self):
        self.write("words", "one\n")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{self.folder}/env"], check=True)
        subprocess.run(["tar", "-czf", f"{self.folder}/env.tar.gz", "-C", f"{self.folder}/env", "."], check=True)
        run, dumps = self.run_job(self.job(environment="stage: [{from: words}]\n"))
        delivered = self.is_delivered(run, dumps)
        folder = delivered.plan["stage"]["folder"]
        self.assertFalse(os.path.exists(folder))
        self.by_hand(run, dumps)
        self.assertEqual(pathlib.Path(f"{folder}/words").read_text(), "one\n")
        shutil.rmtree(folder)
        self.write("staged.yaml", "stage: [{from: env.tar.gz, unpack: true}, {from: words, to: shm}]\nenvironment: {activate: 'venv:$DLRUN_STAGE/env'}\n"
                   "command: [sh, -c, 'cat $DLRUN_STAGE_WORDS && echo $VIRTUAL_ENV && command -v python3 && python3 -c \"import sys; print(sys.prefix)\"']\n")
        code, out, err = self.dlrun("--quiet", "--run-dir", "staged", "staged.yaml")
        self.assertEqual(code, 0, err)
        folder = json.loads(pathlib.Path(f"{self.folder}/staged/plan.json").read_text())["stage"]["folder"]
        self.assertEqual([line.partition("] ")[2] or line for line in out.splitlines()],
                         ["one", f"{folder}/env", f"{folder}/env/bin/python3", f"{folder}/env"])

    def test_the_comparison_knows_every_key_and_finds_what_is_missing(self):
        self.assertEqual(delivery.unchecked_keys(), [])
        run, dumps = self.run_job(self.job())
        broken = delivery.Delivery(f"{run}/plan.json", dumps, dict(self.environment), run=run)
        broken.plan["new"] = broken.plan["ranks"][0]["new"] = 1
        broken.plan["ranks"][1]["defaults"]["D_PLAIN"] = "another"
        broken.plan["ranks"][1]["argv"] = ["another"]
        found = "\n".join(broken.differences())
        for part in ("key new,", "key ranks[].new,", "rank 1: variable D_PLAIN: 'default' is not 'another'", "rank 1: argv: "):
            self.assertIn(part, found)
        self.assertNotIn("rank 0:", found)

    def test_each_protocol_with_and_without_prolog_and_by_the_node_script(self):
        for mpi in ("none", "pmix", "pmi1"):
            self.environment["DUMP_MPI"] = delivery.MPI_LIBRARY[mpi]
            with self.subTest(mpi):
                delivered = self.is_delivered(*self.run_job(self.job(DUMP_MPI), mpi))
                self.assertEqual(delivered.check_limits(delivery.own_limits()), [])
                self.by_hand(delivered.run, self.environment["DUMP_TO"])
            with self.subTest(mpi + " with prolog"):
                run, dumps = self.run_job(self.job(DUMP_MPI, self.prolog()), mpi)
                self.with_prolog(run, dumps)
                shutil.rmtree(dumps)
                os.makedirs(dumps)
                (script,) = glob.glob(f"{run}/nodes/0001-*.sh")
                done = subprocess.run(["bash", script], env=self.environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.with_prolog(run, dumps, by_hand=True)

    def test_a_rank_behind_a_wrap(self):
        """The program behind the wrap is what it is without, in an MPI's world too; the other rank has none."""
        self.write("wrap.sh", '#!/bin/bash\necho "$DLRUN_RANK $1" >> "${0%.sh}ped"\nshift\nexec "$@"\n')
        os.chmod(f"{self.folder}/wrap.sh", 0o755)
        for mpi in ("none", "pmix"):
            self.environment["DUMP_MPI"] = delivery.MPI_LIBRARY[mpi]
            with self.subTest(mpi):
                wrap = f"{{ranks: [1], command: ['{self.folder}/wrap.sh', a word]}}"
                run, dumps = self.run_job(self.job(DUMP_MPI, wrap=wrap), mpi)
                self.assertEqual(self.read("wrapped"), "1 a word\n")
                os.unlink(f"{self.folder}/wrapped")
                told = delivery.Delivery(f"{run}/plan.json", dumps, dict(self.environment), run=run)
                self.assertEqual(told.ranks[1][0]["argv"][:2], [f"{self.folder}/wrap.sh", "a word"])
                del told.ranks[1][0]["argv"][:2]
                self.assertEqual(told.differences(), [])

    def test_in_a_container(self):
        for folder in ("bin", "dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr/bin", "var"):
            os.makedirs(f"{self.folder}/image/{folder}")
        shutil.copy(DUMP, f"{self.folder}/image/bin/dump")
        for name in ("passwd", "group", "hosts", "resolv.conf", "machine-id"):
            self.write(f"image/etc/{name}", "")
        self.environment["USER"] = "root"  # ch-run asks for it
        run, dumps = self.run_job(self.job("/bin/dump", "  container: {image: ./image, engine: charliecloud}\n"))
        self.is_delivered(run, dumps, container=True)

    def test_a_lock_of_the_users_shell_is_no_descriptor_of_ranks(self):
        with open(self.write("lock", ""), encoding="utf-8") as lock:
            for prolog in ("", "  setup: ['true']\n"):
                run, dumps = self.run_job(self.job(environment=prolog), "none", pass_fds=(lock.fileno(),))
                self.is_delivered(run, dumps)

    def test_a_further_attempt(self):
        self.environment["DUMP_CODE_ATTEMPT"] = "1:3"
        run, dumps = self.run_job(self.job(retries=1))
        self.is_delivered(run, dumps, plan="attempts/1/plan.json")
        self.is_delivered(run, dumps)

    def test_launchers_of_frameworks(self):
        """per-node and per-job: one process, which has no role's port and counts for all tasks of its node."""
        adapter = delivery.ADAPTER.replace("  RANK_PORT: \"{{{{rank.port}}}}\"\n", "  TASKS: \"{{{{node.tasks}}}}\"\n")
        adapter = "".join(line for line in adapter.splitlines(True) if not line.startswith(("roles:", "  worker:")))
        for process in ("per-node", "per-job"):
            with self.subTest(process):
                run, dumps = self.run_job(self.job(), "none", adapter=adapter.replace("per-rank", process))
                (rank, dump), = self.is_delivered(run, dumps).ranks
                self.assertEqual((rank["port"], dump["environment"]["TASKS"]), (None, "2"))

    def test_hidden_gpus_and_no_binding(self):
        run, dumps = self.run_job(self.job(bind="false"), "none", "--gpus-per-node", "0")
        delivered = self.is_delivered(run, dumps)
        self.assertEqual([rank["gpus"] for rank, _ in delivered.ranks], [[], []])
        self.assertEqual([dump["affinity"] for _, dump in delivered.ranks], [sorted(os.sched_getaffinity(0))] * 2)

    def run_on_machine_with(self, files, *flags):
        """One run where /sys/class is a folder of our own, in a mount namespace."""
        shutil.rmtree(f"{self.folder}/class", ignore_errors=True)
        for name, text in files.items():
            path = pathlib.Path(f"{self.folder}/class/{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        inside = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)), "sh", "-c",
                  'mount --bind "$0/class" /sys/class && exec "$@"', self.folder)
        self.inside = inside
        run, dumps = self.run_job(self.job(), "none", *flags, inside=inside)
        delivered = self.is_delivered(run, dumps)
        names = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
        return [[dump["environment"].get(name) for name in names] for _, dump in delivered.ranks]

    def test_gpus_of_amd_and_intel_as_the_kernel_shows_them(self):
        for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"):
            self.environment.pop(name, None)
        node = "kfd/kfd/topology/nodes/"
        amd = {f"{node}0/gpu_id": "0", f"{node}0/properties": "simd_count 0\n"}
        for number in (1, 2, 3, 4):
            amd.update({f"{node}{number}/gpu_id": "51110", f"{node}{number}/properties": "simd_count 440\nlocation_id 49408\ndomain 0\n"})
        self.assertEqual(self.run_on_machine_with(amd, "--gpus-per-node", "2"), [["0", "0", "0", None], ["1", "0", "0", None]])
        _, out, err = self.dlrun("doctor", "--json", inside=self.inside)
        self.assertEqual(json.loads(out)["nodes"][0]["values"]["gpus"], {"count": 4, "vendor": "amd"}, err)
        self.environment["ROCR_VISIBLE_DEVICES"] = "2,3"  # as a scheduler leaves two of four
        self.assertEqual(self.run_on_machine_with(amd, "--gpus-per-node", "2"), [["2", "0", "0", None], ["3", "0", "0", None]])
        self.assertEqual(self.run_on_machine_with(amd, "--gpus-per-node", "0"), [["", "", "", "1023"]] * 2)
        del self.environment["ROCR_VISIBLE_DEVICES"]
        intel = {"drm/card0/device/vendor": "0x8086\n", "drm/card0/device/class": "0x038000\n", "drm/card0/gt/gt0/id": "", "drm/card0/gt/gt1/id": ""}
        self.environment["ZE_FLAT_DEVICE_HIERARCHY"] = "COMPOSITE"
        self.assertEqual(self.run_on_machine_with(intel, "--gpus-per-node", "2"), [[None, None, None, "0.0"], [None, None, None, "0.1"]])


if __name__ == "__main__":
    support.main()
