#!/bin/sh
# Another node on this machine: the same files, processors and loopback network under another name,
# which is what MPI tells nodes by. For trying jobs of several nodes where there is only one:
#
#   mpirun --oversubscribe --host a:2,b:2 --mca plm_rsh_agent scripts/node.sh \
#       --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -n 4 bayesmesh train recipe.toml
#
# OpenMPI calls it as it would call ssh: with the name of the node and a command.
node=$1
shift
user=
if [ "$(id -u)" -ne 0 ]; then user=--map-root-user; fi
exec unshare $user --uts sh -c "hostname $node && $*"
