# Sweeps up behind a test process: sh sweep.sh FOLDER
# It reads `started PID`, `ended PID` and `mounted PATH`. When the test process ends, in whatever way, the words end: then the programs that
# were started and not ended are killed, what was mounted is unmounted, and FOLDER is removed.
folder=$1
running=
mounted=
trap '' PIPE

while read -r word pid; do
    case $word in
    started) running="$running $pid" ;;
    mounted) mounted="$mounted $pid" ;;
    ended)
        others=
        for one in $running; do
            [ "$one" = "$pid" ] || others="$others $one"
        done
        running=$others
        ;;
    esac
done

for pid in $running; do
    kill -s KILL "$pid" 2>/dev/null
done
for path in $mounted; do
    umount -l "$path" 2>/dev/null
    rmdir "$path" 2>/dev/null
done
rm -rf -- "$folder"
