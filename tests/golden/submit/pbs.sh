#!/bin/bash
#PBS -N flowers
#PBS -o "/home/ann/my jobs/runs/submit-flowers-1/"
#PBS -j oe
#PBS -S /bin/bash
#PBS -l walltime=8:00:30
#PBS -q gpu
#PBS -A abc
#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4
#PBS -l place=scatter
#PBS --reservation=week

# Written by dlrun submit. It only goes to the folder of the submission and becomes dlrun, which finds the nodes,
# starts and watches the ranks, and whose exit code is the job's.
cd -- '/home/ann/my jobs' || exit 74
exec /opt/dlrun/bin/dlrun run '--spec=/home/ann/my jobs/runs/submit-flowers-1/spec.json' '--framework-dir=$x' $'--run-dir=it\'s\n#$ -l all'
