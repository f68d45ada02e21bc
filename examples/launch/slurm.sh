#!/bin/bash
# A job of hocket under Slurm: sbatch examples/launch/slurm.sh python train.py
#
# One `hocket run` on the first node starts the ranks of all nodes by srun, so that Slurm counts and
# ends them. --overlap lets these steps share the nodes that the script itself runs on.
#SBATCH --job-name=hocket
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:10:00
# Slurm tells the script of the end of its time a minute before; the ranks learn it as SIGTERM.
#SBATCH --signal=B:TERM@60
set -eu

hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/\$/:$SLURM_NTASKS_PER_NODE/" | paste -sd,)

# One step on each node, with all of its processors: `hocket run` binds the ranks itself.
step="srun --nodes=1 --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --overlap --cpu-bind=none --mpi=none"

# exec: the signal reaches hocket, which passes it on.
exec "${HOCKET:-hocket}" run --hosts "$hosts" --launcher "$step --nodelist={host}" --env PATH --grace 30 -- "$@"
