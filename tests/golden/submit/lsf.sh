#!/bin/bash
#BSUB -J flowers
#BSUB -cwd "/home/ann/my jobs"
#BSUB -o "/home/ann/my jobs/runs/submit-flowers-1/%J.out"
#BSUB -n 64
#BSUB -R "span[ptile=32]"
#BSUB -gpu "num=4"
#BSUB -W 8:01
#BSUB -q gpu
#BSUB -P abc
#BSUB --reservation=week

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- '/home/ann/my jobs' || exit 74
exec /opt/dlrun/bin/dlrun run '--spec=/home/ann/my jobs/runs/submit-flowers-1/spec.json' '--framework-dir=$x' $'--run-dir=it\'s\n#$ -l all'
