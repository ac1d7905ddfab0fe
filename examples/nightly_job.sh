#!/bin/sh
# A nightly job with the command line alone: run a tool at every computer of the office, and report what failed.
#   0 3 * * *  A2C_URL=https://… A2C_API_KEY=… A2C_OFFICE=lab /srv/nightly_job.sh backup
set -u
tool=${1:?"the name of a tool"}
failed=0
room=$(a2c agent room --json) || exit
code='import json, sys; print(*(each["name"] for each in json.load(sys.stdin) if each["role"] == "computer"), sep="\n")'
names=$(printf %s "$room" | python3 -c "$code") || exit
# One name a line, because a name may have blanks; and after --, because it may begin with a hyphen.
while IFS= read -r computer; do
  [ -n "$computer" ] || continue
  # Nobody is awake: a call that a person must confirm fails after a minute, and its exit status says so.
  if a2c agent call --timeout 3000 --approval-timeout 60 --wait 30 -- "$computer" "$tool" </dev/null; then
    printf '%s: done\n' "$computer"
  else
    printf '%s: %s failed\n' "$computer" "$tool" >&2
    failed=1
  fi
done <<END
$names
END
exit $failed
