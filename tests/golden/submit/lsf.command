sh -c 'script=$1; shift; exec bsub "$@" <"$script"' bsub '/home/ann/my jobs/runs/submit-flowers-1/job.sh'
