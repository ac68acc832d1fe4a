# The loop of the session's shell, for bash, dash, busybox ash and their like. The keeper puts two definitions before it
# ($__sf_dir, __sf_again) and starts the shell on it. A turn: read a line, source the file `command` at top level (so that
# declare, set and functions stay), report. Nothing of the user's is evaluated anywhere else.
#
# Between turns stdin is the FIFO `go` and stdout the FIFO `report`; during one all three are the command's.
# S1. No other descriptor is held, so a command may close or overwrite any of them.
# S2. Whatever ends the shell but a signal comes by the EXIT trap, which saves the state and re-executes the shell: same
#     process, directory, umask, descriptors and children. What a shell cannot express is named in the report.
# S3. SIGURG (23) asks a running command to come back. Ignored by default, it does no harm to a shell that has just re-executed
#     itself and sets its traps only now, so it may come more than once.
# S4. Names are the user's to redefine. What runs between turns is parsed before anything of the user's (no aliases), calls
#     builtins through `command`, is silent about IFS, and ends the shell rather than spin when nothing runs any more (set -n).

__sf_turn='' __sf_rc=0 __sf_notes='' __sf_busy='' __sf_extra='' __sf_trace='' __sf_stopped='' __sf_status=''
__sf_seen='' __sf_missed='' __sf_wants='' __sf_action='' __sf_denied='' __sf_errexit='' __sf_wrapped=''

__sf_return() { command return "$1"; }

# Not in bash: in a subshell, $$ is still the shell's.
__sf_is_subshell() {
  command read -r __sf_line </proc/self/stat
  case "${__sf_line%% *}" in "$$") command return 1 ;; esac
}

# A function named `command` would stop the loop, whatever it does. It goes, and that is said. (Nothing here is parsed anew: the
# parser of bash may be damaged by what it has just refused.)
__sf_check() {
  command return 0 # which a function cannot do for its caller
  __sf_seen=command
  case ${BASH_VERSION-} in
    ?*)
      POSIXLY_CORRECT=1 # now no function can take the place of unset
      unset -f command builtin unset
      unset POSIXLY_CORRECT
      ;;
    *) unset -f command ;;
  esac
}

# Is the variable exported? Asked of the list that the file `before` wrote.
__sf_exported() {
  while command read -r __sf_name; do
    case $__sf_name in "export $1" | "export $1="*) command return 0 ;; esac
  done <"$__sf_dir/exported"
  command return 1
}

# __sf_give NAME VALUE: a variable for one command. What it was is remembered for __sf_take.
__sf_give() {
  __sf_line=''
  case ${BASH_VERSION-} in
    ?*)
      command declare -p "$1" >|"$__sf_dir/old" 2>/dev/null && command read -r -d '' __sf_line <"$__sf_dir/old"
      command unset -v "$1" 2>/dev/null || __sf_denied=$1
      ;;
    *)
      command eval "__sf_line=\${$1+set}\${$1-}"
      case $__sf_line in ?*) ! __sf_exported "$1" || __sf_line=exported${__sf_line#set} ;; esac
      ;;
  esac
  command eval "__sf_old_$1=\$__sf_line"
  command export "$1=$2" 2>/dev/null || __sf_denied=$1
}

__sf_take() {
  command eval "__sf_line=\$__sf_old_$1"
  command unset "__sf_old_$1"
  command unset -v "$1" 2>/dev/null || case $__sf_denied in '') __sf_seen=readonly ;; esac
  case $__sf_line in
    declare*) command eval "declare -g ${__sf_line#declare}" ;;
    exported*) command export "$1=${__sf_line#exported}" ;;
    set*) command eval "$1=\${__sf_line#set}" ;;
  esac 2>/dev/null || command true
}

# The directory of one command, and back.
__sf_enter() {
  __sf_cwd=$PWD __sf_oldpwd=${OLDPWD-}
  CDPATH='' command cd -- "$1"
}

__sf_go_back() {
  CDPATH='' command cd -- "$__sf_cwd" || __sf_seen=directory
  OLDPWD=$__sf_oldpwd
  command unset __sf_cwd __sf_oldpwd
}

# Stands in for `trap` in a command that says so: ours stays on EXIT, and the user's is remembered for the end of the command.
__sf_trap() {
  case ${BASH_VERSION-} in
    ?*) case $BASHPID in "$$") ;; *) command trap "$@" && command return ;; esac ;;
    *) ! __sf_is_subshell || { command trap "$@" && command return; } ;;
  esac
  case ${1-} in --) command shift ;; esac
  case $#:${1-} in 0: | *:-?*) command trap "$@" && command return ;; esac
  case $#:${1-} in
    1:* | *:[0-9]*) __sf_act=- ;;
    *) __sf_act=$1 && command shift ;;
  esac
  for __sf_line in "$@"; do
    case $__sf_line in
      0 | EXIT | exit | SIGEXIT) __sf_action=$__sf_act __sf_wants=exit ;;
      *) command trap -- "$__sf_act" "$__sf_line" ;;
    esac
  done
}

# For a command that names `trap`: __sf_trap takes its place, unless there is a function of the user's.
__sf_wrap() {
  case ${BASH_VERSION-} in
    ?*) command declare -F trap >/dev/null || { __sf_wrapped=1 && command eval 'trap() { __sf_trap "$@"; }'; } ;;
    *) command alias trap >/dev/null 2>&1 || { __sf_wrapped=1 && command alias trap=__sf_trap; } ;;
  esac
}

__sf_unwrap() {
  case $__sf_wrapped:${BASH_VERSION-} in
    1:?*) # unless the command has put its own in its place
      command declare -f trap >|"$__sf_dir/old"
      command read -r -d '' __sf_line <"$__sf_dir/old"
      case $__sf_line in *__sf_trap*) command unset -f trap ;; esac
      ;;
    1:) command unalias trap 2>/dev/null || command true ;;
  esac
  __sf_wrapped=''
}

# In bash an EXIT trap still sees the locals of the functions that ended with it. Unset by another function, a local gives way
# to what it hides, until the one seen is the global one: the one that takes an attribute (-t, which means nothing to it).
__sf_reveal() {
  command compgen -v >|"$__sf_dir/names" || __sf_flags=$__sf_flags,locals
  while command read -r __sf_name; do
    case $__sf_name in __sf_* | BASH* | FUNCNAME | DIRSTACK | GROUPS | PIPESTATUS | _) continue ;; esac
    command declare -g -t "$__sf_name" 2>/dev/null || continue
    while case ${!__sf_name@a} in *t*) command false ;; esac do
      command unset "$__sf_name" 2>/dev/null || { __sf_flags=$__sf_flags,locals && break; }
      command declare -p "$__sf_name" >/dev/null 2>&1 || break
    done
    command declare -g +t "$__sf_name"
  done <"$__sf_dir/names"
}

__sf_save_bash() {
  __sf_line=${FUNCNAME[2]-} # below ours
  case $__sf_line in __sf_stop) __sf_line=${FUNCNAME[3]-} ;; esac
  case $__sf_line:$BASH_VERSION in
    :*) ;;
    *:[1-4].*) __sf_flags=$__sf_flags,locals ;;
    *) __sf_reveal ;;
  esac
  # Inside a function the positional parameters are its own; those of the shell are as they were when the command began.
  case $__sf_line in ?*) command eval 'set -- "${__sf_args[@]}"' ;; esac
  case $__sf_extra in *surroundings*) command . "$__sf_dir/after" ;; esac
  case $! in ?*) __sf_flags="$__sf_flags,jobs" ;; esac
  case ${#DIRSTACK[@]} in 0 | 1) ;; *) __sf_flags="$__sf_flags,dirs" ;; esac
  {
    command shopt -p
    command declare -p
    command declare -f
    command declare -F
    command trap -p
    case $# in 0) ;; *) command printf 'set --' && command printf ' %q' "$@" && command printf '\n' ;; esac
    command alias -p
    command printf '%s\n' __sf_whole=1
  } >|"$__sf_dir/state"
}

__sf_save_posix() {
  case $__sf_extra in *surroundings*) command . "$__sf_dir/after" ;; esac
  __sf_flags=$__sf_flags,functions __sf_count=0
  case $! in ?*) __sf_flags="$__sf_flags,jobs" ;; esac
  for __sf_line in "$@"; do
    __sf_count=$((__sf_count + 1))
    command eval "__sf_arg$__sf_count=\$__sf_line"
  done
  {
    command set
    command export -p
    command readonly -p
    command trap
    command printf '%s\n' __sf_whole=1
  } >|"$__sf_dir/state"
  command alias >|"$__sf_dir/aliases"
}

# exit, set -e, set -u, ${x:?} and SIGURG end here, at whatever depth they happened.
__sf_leave() {
  __sf_rc=$? __sf_busy=''
  __sf_check
  command set +o >|"$__sf_dir/options"
  case $- in *x*) __sf_trace=x ;; esac
  command set +eux
  __sf_unwrap
  __sf_flags=''
  case $__sf_errexit in e) command printf '%s\n' 'set -e' >>"$__sf_dir/options" ;; esac
  case $__sf_wants in
    exit) # as of a script: its trap runs now. Apart, because it may itself exit
      __sf_flags=$__sf_flags,ran
      (
        command trap - EXIT
        __sf_return "$__sf_rc"
        command eval "$__sf_action"
        command exit "$__sf_rc"
      ) 2>"$__sf_dir/stderr"
      __sf_rc=$?
      ;;
  esac
  command exec </dev/null >"$__sf_dir/report" 2>/dev/null
  command printf '%s leaving\n' "$__sf_turn"
  case ${BASH_VERSION-} in
    ?*) __sf_save_bash "$@" ;;
    *) __sf_save_posix "$@" ;;
  esac
  __sf_again resumed "$__sf_turn" "$__sf_rc" "kept,$__sf_seen$__sf_flags"
}

__sf_stop() {
  case $__sf_busy in
    '') __sf_stopped=$__sf_turn ;;
    *) __sf_return 143 || { __sf_leave "$@"; } 2>/dev/null ;; # no exit: its trap may already have begun
  esac
}

# After a re-execution: the state comes back, as far as it could be saved.
# One compound command, read whole before it runs: aliases and closed descriptors of the user's cannot change it.
{
  case ${1-} in
    resumed)
      __sf_told="$2 $3 $4" __sf_whole='' # not among what was saved
      command set --
      command . "$__sf_dir/state" >/dev/null
      __sf_turn=${__sf_told%% *} __sf_rc=${__sf_told#* } __sf_notes=${__sf_told##* }
      __sf_rc=${__sf_rc% *}
      command unset __sf_told
      case $__sf_whole in '') __sf_notes=$__sf_notes,incomplete ;; esac
      case ${BASH_VERSION-} in
        ?*) command . "$__sf_dir/hooks" ;;
        *)
          while command read -r __sf_line; do command eval "alias ${__sf_line#alias }"; done <"$__sf_dir/aliases"
          __sf_args=''
          while command test "$__sf_count" -gt 0; do
            __sf_args="\"\$__sf_arg$__sf_count\" $__sf_args"
            __sf_count=$((__sf_count - 1))
          done
          command eval "set -- $__sf_args"
          ;;
      esac
      __sf_busy='' __sf_extra='' __sf_seen='' __sf_errexit='' __sf_wants=''
      command . "$__sf_dir/options"
      ;;
    *) __sf_turn=ready ;;
  esac
  # The inner loop is left by a `break` in a command, or because nothing runs any more; then the outer one ends too.
  until command test ''; do
    command true
    until
      { # quiet: a traced shell would show these lines on the command's stderr
        __sf_status=$?
        case $- in
          *x*)
            __sf_trace=x
            command set +x
            ;;
        esac
        case $- in
          *e*)
            __sf_errexit=e
            command set +e
            ;;
        esac
        __sf_check
      } 2>/dev/null
      command test '' # goes on. Where nothing runs any more, this does not fail either, and the shell ends
    do
      # Without them the session's own folder was removed; the next shell finds it made again.
      command exec <"$__sf_dir/go" >"$__sf_dir/report" 2>/dev/null || command kill -9 $$
      case $__sf_busy in
        ?*) # a command has ended, or left by `continue`
          __sf_busy='' __sf_rc=$__sf_status __sf_notes=same
          __sf_unwrap
          case $__sf_wants in exit) command trap -- "$__sf_action" EXIT ;; esac
          # Has it set an EXIT trap of its own? The keeper reads what the shell says of it, and keeps that for the shell's end.
          case ${BASH_VERSION-} in
            ?*) command trap -p DEBUG RETURN ERR EXIT ;;
            *) command trap ;;
          esac
          case $__sf_extra in *surroundings*) command . "$__sf_dir/after" ;; esac
          case $__sf_seen in ?*) __sf_notes=same,$__sf_seen ;; esac
          ;;
      esac
      command trap '{ __sf_leave "$@"; } 2>/dev/null' EXIT
      command trap '__sf_stop "$@"' 23
      case $__sf_turn in
        ?*)
          command printf '%s %s %s\n' "$__sf_turn" "$__sf_rc" "$__sf_notes"
          __sf_seen=''
          ;;
      esac
      __sf_turn='' __sf_stopped='' __sf_notes=same __sf_input=/dev/null __sf_wants='' __sf_denied=''
      command read -r __sf_line || {
        __sf_missed=x$__sf_missed
        case $__sf_missed in
          x) ;; # a signal that came late
          xxxxxx*) command kill -9 $$ ;;
          *) # `enable -n`
            command enable alias compgen declare eval exec exit export printf read return set shopt test trap true unset .
            __sf_seen=builtins
            ;;
        esac
        continue
      }
      __sf_turn=${__sf_line%% *} __sf_extra=${__sf_line#* } __sf_missed=''
      case $__sf_extra in
        input*) __sf_input=$__sf_dir/input ;;
        leave*)
          __sf_turn=''
          command exec </dev/null >"$__sf_dir/stdout" 2>"$__sf_dir/stderr"
          command trap - EXIT
          case $__sf_extra in *trap*) command . "$__sf_dir/exit" ;; esac
          command exit 0
          ;;
      esac
      case $__sf_extra in
        *surroundings*)
          command . "$__sf_dir/before" || __sf_notes=cwd
          case $__sf_denied in
            ?*)
              command printf '%s: readonly variable\n' "$__sf_denied" >"$__sf_dir/stderr"
              __sf_rc=1 __sf_notes=denied
              ;;
          esac
          case $__sf_notes in
            same) ;;
            *)
              command . "$__sf_dir/after"
              __sf_extra=''
              continue
              ;;
          esac
          ;;
      esac
      case $__sf_extra in *traps*) __sf_wrap ;; esac
      command exec <"$__sf_input" >"$__sf_dir/stdout"
      case ${__sf_args-}:$#:${BASH_VERSION-} in
        :0:* | *:) ;;
        *) command eval '__sf_args=("$@")' ;;
      esac
      __sf_busy=1
      case $__sf_stopped in "$__sf_turn") command exit 143 ;; esac # it came before we were busy
      case $__sf_errexit in
        e)
          __sf_errexit=''
          command set -e
          ;;
      esac
      # $? is what the command before left. stderr is open before, so that what an EXIT trap prints there is not lost; but for a
      # traced shell, which would show the line itself there.
      case $__sf_trace:$__sf_rc in
        x:*)
          __sf_trace=''
          { command set -x; } 2>/dev/null
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
  done
  # Left by `break 9`. The EXIT trap saves what there is.
  command exit 0
}
