# Becomes the server "$1" of the data in "$2", with its socket in "$3" and a guard next to it: when the process that
# started this ends in whatever way, the guard's input ends, and the guard stops the server.
# The guard is a grandchild, so that the server never sees it among its own children.
exec 3<&0
(
    (
        trap '' HUP INT QUIT TERM
        IFS= read -r word <&3
        [ "$word" = done ] && exit 0
        kill -INT $$ || exit 0
        seconds=0
        while [ $seconds -lt 60 ] && kill -0 $$; do
            sleep 1
            seconds=$((seconds + 1))
        done
        kill -QUIT $$
        rmdir "$3"
    ) >/dev/null 2>&1 &
)
exec "$1" -D "$2" </dev/null 3<&-
