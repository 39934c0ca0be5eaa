# Keeps one server for a test: sh supervise.sh FOLDER LAST-SIGNAL USER-OR-DASH COMMAND...
# It reads words from the test and answers each with one line. When the test process ends, in whatever way, the words
# end: then the server gets LAST-SIGNAL and FOLDER is removed. So nothing outlives a test that was killed.
folder=$1 last=$2 user=$3
shift 3
child=
# The test may be gone when an answer is due; that must not end this script before it has cleaned up.
trap '' PIPE

if [ "$user" != - ]; then
    # setpriv, because it becomes the server; runuser would stay in between and keep the signals.
    set -- setpriv --reuid "$user" --regid "$user" --init-groups -- "$@"
fi

while read -r word rest; do
    case $word in
    copy)
        # Here, so that it is over before the folder is removed. With its owner, who is another user under root.
        if cp -a -- "$rest" "$folder/" 2>>"$folder/log"; then echo yes; else echo no; fi
        ;;
    start)
        # What is different from one start to the next comes with the word.
        # shellcheck disable=SC2086
        "$@" $rest >>"$folder/log" 2>&1 &
        child=$!
        echo "$child"
        ;;
    alive)
        # Looking at the jobs reaps a child that has ended, so that kill does not find its remains.
        jobs >/dev/null
        if kill -0 "$child" 2>/dev/null; then echo yes; else echo no; fi
        ;;
    *)
        kill -s "$word" "$child" 2>/dev/null
        # The shell would report the end that was asked for.
        wait "$child" 2>/dev/null
        echo gone
        ;;
    esac
done

if [ -n "$child" ]; then
    kill -s "$last" "$child" 2>/dev/null
    wait "$child" 2>/dev/null
fi
rm -rf -- "$folder"
