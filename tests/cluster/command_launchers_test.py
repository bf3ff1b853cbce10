#!/usr/bin/env python3
"""Launchers that are commands of a site: those of both MPIs for real, and those of schedulers as small programs that do what the
real ones do: they run a command on a node of the job."""
import glob
import os

import support
from support import DLRUN

NODES = ["n1", "n2", "n3", "n4"]
# What the real ones have in common: no standard input, the host as the job's node file spells it. qrsh alone has a shell there
# take its words apart.
RUN_THERE = 'host=$1; shift; exec ssh -n "$host" "$(printf "%q " "$@")"\n'
ONE_HOST = {"pbs_tmrsh": RUN_THERE, "pbsdsh": '[ "$1" = -h ] || exit 9; shift\n' + RUN_THERE,
            "qrsh": '[ "$1 $2" = "-inherit -nostdin" ] || exit 9; shift 2\nhost=$1; shift; exec ssh -n "$host" "$*"\n'}
MANY_HOSTS = {"blaunch": '[ "$1 $2" = "-n -z" ] || exit 9; hosts=$3; shift 3\n'
                         'for host in $hosts; do ssh -n "$host" "$(printf "%q " "$@")" & done; wait\n',
              "flux": 'if [ "$1" = getattr ]; then echo "n[1-4]"; exit; fi\n[ "$1 $2 $3" = "exec --noinput -r" ] || exit 9\n'
                      'ranks=$4; shift 4; for rank in ${ranks//,/ }; do ssh -n "n$((rank + 1))" "$(printf "%q " "$@")" & done; wait\n'}
# It takes the options that it has, and no others.
PALS = """[ "$1" = --version ] && { echo mpiexec version 1.4.0; exit; }
[ -z "$PALS_DEPTH" ] || exit 9
while [ "$1" != -- ]; do
  case $1 in
    --hosts) hosts=$2; shift 2;; -n) n=$2; shift 2;; --ppn) ppn=$2; shift 2;; --cpu-bind | --mem-bind | --pmi) shift 2;;
    --no-transfer | --no-abort-on-failure | --no-label) shift;; *) echo "no such option $1" >&2; exit 9;;
  esac
done
shift
for host in ${hosts//,/ }; do ssh -n "$host" "$(printf "%q " "$@")" & done; wait
"""


class CommandLaunchers(support.Case):
    def tools(self, **programs):
        """A folder with these programs alone, to be first on PATH."""
        folder = f"{self.folder}/bin"
        os.makedirs(folder, exist_ok=True)
        for name, text in programs.items():
            self.write(f"bin/{name}", "#!/bin/bash\n" + text)
        return folder

    def run_by(self, launcher, tools, job, nodes=NODES):
        code, out, err = self.run_on(
            DLRUN, "--quiet", "--via", launcher, "--hosts", ",".join(nodes), "--run-dir", "a run", "--framework", "plain", "--",
            "sh", "-c", "echo $(hostname) $DLRUN_RANK", env={"PATH": f"{tools}:/usr/bin:/bin", **job})
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"[worker {i} {node}] {node} {i}" for i, node in enumerate(nodes)])
        self.assertEqual(glob.glob(f"{self.folder}/a run/agent-token*"), [])
        # An engine's own processes, which are the last to go, are none that ranks left.
        self.assertEqual(self.record("a run")["attempts"][0]["processes_ended_behind_ranks"], 0)
        return err

    def test_hydra(self):
        self.run_by("mpiexec", self.tools(mpiexec='exec mpiexec.hydra "$@"\n'), {})

    def test_open_mpi(self):
        self.run_by("mpiexec", self.tools(mpiexec='exec mpirun.openmpi "$@"\n'), {})

    def test_pals(self):
        """HPE Cray's, known by its folder; as Polaris and Aurora have it."""
        os.makedirs(f"{self.folder}/pals/1.4/bin", exist_ok=True)
        self.write("pals/1.4/bin/mpiexec", "#!/bin/bash\n" + PALS)
        tools = self.tools()
        os.symlink(f"{self.folder}/pals/1.4/bin/mpiexec", f"{tools}/mpiexec")
        self.run_by("mpiexec", tools, {"PALS_DEPTH": "8"}, nodes=["n3", "n1"])

    def test_openpbs(self):
        self.run_by("pbs", self.tools(pbs_tmrsh='[ $# = 0 ] && exit 1\n' + ONE_HOST["pbs_tmrsh"]), {"PBS_JOBID": "1.pbs"})

    def test_torque(self):
        self.run_by("pbs", self.tools(pbsdsh=ONE_HOST["pbsdsh"]), {"PBS_JOBID": "1.pbs"})

    def test_grid_engine(self):
        self.run_by("gridengine", self.tools(qrsh=ONE_HOST["qrsh"]), {"PE_HOSTFILE": "/dev/null"})

    def test_lsf(self):
        self.run_by("lsf", self.tools(blaunch=MANY_HOSTS["blaunch"]), {"LSB_JOBID": "1"})

    def test_flux(self):
        self.run_by("flux", self.tools(flux=MANY_HOSTS["flux"]), {}, nodes=["n4", "n2"])

    def test_an_engine_that_fails_for_one_node(self):
        tools = self.tools(qrsh='[ "$3" = n3 ] && { echo "error: no task on $3" >&2; exit 1; }\n' + ONE_HOST["qrsh"])
        code, out, err = self.run_on(DLRUN, "--quiet", "--via", "gridengine", "--hosts", ",".join(NODES), "--framework", "plain", "--", "hostname",
                                     env={"PATH": f"{tools}:/usr/bin:/bin", "PE_HOSTFILE": "/dev/null"})
        self.assertEqual((code, out), (69, ""), err)
        self.assertIn("1 of 4 nodes cannot be reached by gridengine: n3", err)
        self.assertIn("| error: no task on n3", err)

    def test_a_launcher_outside_of_a_job(self):
        code, _, err = self.run_on(DLRUN, "--via", "pbs", "--hosts", "n1,n2", "--framework", "plain", "--", "hostname")
        self.assertEqual(code, 69)
        self.assertIn("launch.via: pbs works only inside a PBS job (PBS_JOBID is not set)", err)


if __name__ == "__main__":
    support.main()
