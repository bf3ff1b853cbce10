#!/bin/bash
#flux: --job-name=flowers
#flux: --cwd="/home/ann/my jobs"
#flux: --output="/home/ann/my jobs/runs/submit-flowers-1/{{id}}.out"
#flux: --nodes=2
#flux: --nslots=2
#flux: --cores-per-slot=32
#flux: --gpus-per-slot=4
#flux: --time-limit=28830s
#flux: --queue=gpu
#flux: --bank=abc
#flux: --reservation=week

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- '/home/ann/my jobs' || exit 74
exec /opt/dlrun/bin/dlrun run '--spec=/home/ann/my jobs/runs/submit-flowers-1/spec.json' '--framework-dir=$x' $'--run-dir=it\'s\n#$ -l all'
