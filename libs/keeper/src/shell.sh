# The loop of the session's shell, for bash, dash, busybox ash and their like. The keeper puts two definitions before it
# ($__sf_dir, __sf_again) and starts the shell on it. A turn: read a line, source the file `command` at top level (so that
# declare, set and functions stay), report. Nothing of the user's is evaluated anywhere else.
#
# Between turns stdin is the FIFO `go` and stdout the FIFO `report`; during one all three are the command's.
# S1. No other descriptor is held, so a command may close or overwrite any of them.
# S2. Whatever ends the shell but a signal comes by the EXIT trap, which saves the state and re-executes the shell: same
#     process, directory, umask, descriptors and children. What a shell cannot express is named in the report.
# S3. SIGPWR (30) asks a running command to come back. The shell reports when it is on its way anyway: from then on until its next
#     turn the keeper sends none, because a shell that has just re-executed itself would die of it.

__sf_turn='' __sf_rc=0 __sf_notes='' __sf_busy='' __sf_extra='' __sf_trace='' __sf_stopped='' __sf_status=''

__sf_return() { return "$1"; }

# Is the variable exported? Asked of the list that the file `before` wrote.
__sf_exported() {
  while IFS= command read -r __sf_line; do
    case $__sf_line in "export $1" | "export $1="* | "declare -"*x*" $1" | "declare -"*x*" $1="*) return 0 ;; esac
  done <"$__sf_dir/exported"
  return 1
}

# exit, set -e, set -u, ${x:?} and SIGPWR end here, at whatever depth they happened.
__sf_leave() {
  __sf_rc=$?
  __sf_busy=''
  command set +o >|"$__sf_dir/options"
  case $- in *x*) __sf_trace=x ;; esac
  command set +eux
  command exec </dev/null >"$__sf_dir/report" 2>/dev/null
  command printf '%s leaving\n' "$__sf_turn"
  __sf_flags=''
  if [ -n "$__sf_extra" ]; then
    command . "$__sf_dir/after"
    __sf_extra=''
  fi
  IFS=' '
  __sf_count=0
  if [ -n "${BASH_VERSION-}" ]; then
    [ "${#FUNCNAME[@]}" -le 1 ] || __sf_flags="$__sf_flags,locals"
    [ -z "$!" ] || __sf_flags="$__sf_flags,jobs"
    [ "${#DIRSTACK[@]}" -le 1 ] || __sf_flags="$__sf_flags,dirs"
    __sf_notes=kept$__sf_flags
    {
      command shopt -p
      command declare -p
      command declare -f
      command declare -F
      command trap -p
      [ "$#" = 0 ] || { command printf 'set --' && command printf ' %q' "$@" && command printf '\n'; }
      command alias -p
      command printf '%s\n' __sf_whole=1
    } >|"$__sf_dir/state"
  else
    __sf_notes=kept,functions
    [ -z "$!" ] || __sf_notes="$__sf_notes,jobs"
    for __sf_line in "$@"; do
      __sf_count=$((__sf_count + 1))
      eval "__sf_arg$__sf_count=\$__sf_line"
    done
    {
      command set
      command export -p
      command readonly -p
      command trap
      command printf '%s\n' __sf_whole=1
    } >|"$__sf_dir/state"
    command alias >|"$__sf_dir/aliases"
  fi
  __sf_again resumed
}

# One compound command, read whole before it runs: aliases and closed descriptors of the user's cannot change it.
{
  if [ "${1-}" = resumed ]; then
    shift
    __sf_whole=''
    command . "$__sf_dir/state"
    [ -n "$__sf_whole" ] || __sf_notes="$__sf_notes,incomplete"
    unset __sf_whole
    if [ -z "${BASH_VERSION-}" ]; then
      while IFS= command read -r __sf_line; do command eval "alias ${__sf_line#alias }"; done <"$__sf_dir/aliases"
      __sf_args=''
      while [ "$__sf_count" -gt 0 ]; do
        __sf_args="\"\$__sf_arg$__sf_count\" $__sf_args"
        __sf_count=$((__sf_count - 1))
      done
      command eval "set -- $__sf_args"
      unset __sf_args
    fi
    __sf_busy=''
    command . "$__sf_dir/options"
  else
    __sf_turn=ready
  fi
  while
    { # quiet: a traced shell would show these lines on the command's stderr
      __sf_status=$?
      case $- in
        *x*)
          __sf_trace=x
          set +x
          ;;
      esac
    } 2>/dev/null
  do
    # Without them the session's own folder was removed; the next shell finds it made again.
    command exec <"$__sf_dir/go" >"$__sf_dir/report" 2>/dev/null || command kill -9 $$
    case $__sf_busy in
      ?*) # a command has ended, or left by `continue`
        __sf_busy='' __sf_rc=$__sf_status __sf_notes=same
        # Has it set an EXIT trap of its own? The keeper reads what the shell says of it, and keeps that for the shell's end.
        case ${BASH_VERSION-} in
          ?*) command trap -p EXIT ;;
          *) command trap ;;
        esac
        case $__sf_extra in ?*) command . "$__sf_dir/after" ;; esac
        ;;
    esac
    command trap '{ __sf_leave "$@"; } 2>/dev/null' EXIT
    command trap 'case $__sf_busy in ?*) command exit 143 ;; *) __sf_stopped=$__sf_turn ;; esac' 30
    case $__sf_turn in ?*) command printf '%s %s %s\n' "$__sf_turn" "$__sf_rc" "$__sf_notes" ;; esac
    __sf_turn='' __sf_stopped='' __sf_notes=same __sf_input=/dev/null
    IFS=' ' command read -r __sf_turn __sf_how __sf_extra || continue
    case $__sf_how in
      input) __sf_input=$__sf_dir/input ;;
      leave)
        __sf_turn=''
        command set +e
        command exec </dev/null >"$__sf_dir/stdout" 2>"$__sf_dir/stderr"
        command trap - EXIT
        case $__sf_extra in ?*) command . "$__sf_dir/exit" ;; esac
        command exit 0
        ;;
    esac
    case $__sf_extra in
      ?*)
        command . "$__sf_dir/before" || {
          command . "$__sf_dir/after"
          __sf_notes=cwd __sf_extra=''
          continue
        }
        ;;
    esac
    command exec <"$__sf_input" >"$__sf_dir/stdout"
    __sf_busy=1
    case $__sf_stopped in "$__sf_turn") command exit 143 ;; esac # it came before we were busy
    # $? is what the command before left. stderr is open before, so that what an EXIT trap prints there is not lost; but for a
    # traced shell, which would show the line itself there.
    case $__sf_trace:$__sf_rc in
      x:*)
        __sf_trace=''
        { set -x; } 2>/dev/null
        command . "$__sf_dir/command" 2>"$__sf_dir/stderr"
        ;;
      *:0)
        command exec 2>"$__sf_dir/stderr"
        command . "$__sf_dir/command"
        ;;
      *)
        command exec 2>"$__sf_dir/stderr"
        __sf_return "$__sf_rc" || command . "$__sf_dir/command"
        ;;
    esac
  done
  # A `break` in the command left the loop. The EXIT trap saves what there is.
  command exit 0
}
