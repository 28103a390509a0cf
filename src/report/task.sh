
# The same for all tasks. A task leaves one results file, whole or absent. Until it ends, what it measured lies in
# .tasks, and a task that is started again on the same machine goes on with it.
cd -- "$out" || exit 1
results=task-$task.json
[ ! -e "$results" ] || exit 0
mkdir -p .tasks || exit 1
[ -s fleet.yaml ] || echo "tasks: $tasks" >fleet.yaml
machine=$(printf %s "$machine" | tr -c 'A-Za-z0-9._-' '-')
# Eight GPUs by their UUIDs would be longer than a file's name can be.
[ ${#machine} -le 120 ] ||
    machine=$(printf %.100s "$machine")-$(printf %s "$machine" | cksum | cut -d ' ' -f 1)
part=.tasks/task-$task@$machine.json
# A signal reaches the program, too, which keeps what it has; the exit code is written then.
trap : TERM INT

code=2
for kept in $(ls -t ".tasks/task-$task@$machine."*json 2>/dev/null); do
    if "$report" check --whole "$kept" >/dev/null 2>&1; then
        part=$kept
        code=0
    fi
    [ "$code" = 2 ] || break
    # What was begun elsewhere, or with another program, is refused, and the run begins anew.
    resume "$kept"
    code=$?
done
if [ "$code" = 2 ]; then
    begin
    code=$?
fi

# A run whose rows failed in part is whole, too; its exit code is not 0.
if "$report" check --whole "$part" >/dev/null 2>&1 && mv -- "$part" "$results"; then
    rm -f -- ".tasks/task-$task@"* "task-$task.exit"
else
    [ "$code" != 0 ] || code=1
    echo "$code" >"task-$task.exit"
fi
exit "$code"
