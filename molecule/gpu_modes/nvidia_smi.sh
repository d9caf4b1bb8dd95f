#!/bin/sh
# A stand-in for nvidia-smi with two GPUs, which forget their mode at a boot: /run is new then.
state=/run/stand-in-mode
case "$1" in
    --query-gpu=compute_mode) cat $state 2> /dev/null || printf 'Default\nDefault\n' ;;
    --query-gpu=index,compute_mode) "$0" --query-gpu=compute_mode | sed 's/^/0, /' ;;
    --compute-mode=EXCLUSIVE_PROCESS) printf 'Exclusive_Process\nExclusive_Process\n' > $state ;;
    --compute-mode=DEFAULT) rm -f $state ;;
    *) echo "Invalid argument: $1"; exit 2 ;;
esac
