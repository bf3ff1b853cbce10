#!/bin/bash
#$ -N flowers
#$ -wd "/home/ann/my jobs"
#$ -o "/home/ann/my jobs/runs/submit-flowers-1"
#$ -j y
#$ -S /bin/bash
#$ -notify
#$ -l h_rt=28830
#$ -q gpu
#$ -P abc
#$ -pe mpi 64
#$ -l gpu=4

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- '/home/ann/my jobs' || exit 74
exec /opt/dlrun/bin/dlrun run '--spec=/home/ann/my jobs/runs/submit-flowers-1/spec.json' '--framework-dir=$x' $'--run-dir=it\'s\n#$ -l all'
