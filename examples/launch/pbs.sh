#!/bin/bash
# A job of hocket under PBS (OpenPBS, PBS Pro, Torque): qsub -v PROGRAM="python train.py" examples/launch/pbs.sh
#
# PBS_NODEFILE has a line for each place: a host with four places stands there four times. `hocket run`
# adds them up, and starts the ranks by ssh.
#PBS -N hocket
#PBS -l select=2:ncpus=4:mpiprocs=4
#PBS -l walltime=00:10:00
set -eu

cd "$PBS_O_WORKDIR"
# shellcheck disable=SC2086  # PROGRAM is a list of words
exec "${HOCKET:-hocket}" run --hostfile "$PBS_NODEFILE" --env PATH --grace 30 -- $PROGRAM
