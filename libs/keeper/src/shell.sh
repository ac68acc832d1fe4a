# The loop of the session's shell, for bash, dash, busybox ash and similar ones. The keeper puts two definitions before
# it and starts the shell on it: __sf_place, which sets $__sf_dir, $__sf_fd, $__sf_script, $__sf_loop and $__sf_library,
# and __sf_again. For each command it reads a line with a run token, sources the script at top level (so that declare,
# set and functions stay), and reports the end. Nothing else is evaluated but the user's traps and the saved state.
# Scripts, and the texts that surround and check them, are in sealed files of the keeper, whose descriptors the shell
# has inherited. The last digit of the run token is that of the script's descriptor; the words before=, after=, check=
# and early= name the others.
#
# Between commands stdin is the FIFO `go` and stdout the FIFO `report`; during a command all three are the command's.
#
# In a bash that can load it, the builtin __sf_step (libs/keeper/builtin) does the same between two ordinary commands,
# and the loop does what is out of the ordinary.
#
# LOOP-1. The loop holds no descriptors but those of the sealed files, which the keeper checks before each command. So a
#     command may close or overwrite any other.
# LOOP-2. Every end of the shell, except by a signal, runs the EXIT trap, which saves the state and re-executes the
#     shell: the same process, directory, umask, descriptors and children. State that a shell cannot express is named in
#     the report. A signal that nothing traps ends the shell, as it ends a script. bash runs its EXIT trap before
#     that: it saves the state, and the keeper continues with it in a new process.
# LOOP-3. SIGURG (23) asks a running command to come back. It is ignored by default, so it may be sent more than once,
#     also to a shell that has just re-executed itself and has not set its traps yet.
# LOOP-4. The user may redefine every name. Therefore code between commands is parsed before any code of the user's (no
#     aliases), calls builtins through `command`, does not depend on IFS, and ends the shell when no command works any
#     more (set -n), because it would loop without end. What a command has made of the loop's own variables is undone
#     where the shell can (__sf_mend). Otherwise the shell ends at once, and no command waits for it.

__sf_place 0
__sf_token='' __sf_rc=0 __sf_notes='' __sf_busy='' __sf_extra='' __sf_trace='' __sf_stopped='' __sf_status=''
__sf_seen='' __sf_missed='' __sf_wants='' __sf_action='' __sf_denied='' __sf_errexit='' __sf_wrapped=''
__sf_open='' __sf_parsed='' __sf_signalled='' __sf_step='' __sf_back='' __sf_missing='' __sf_read=''
# Set when more steps than sourcing the script are needed, because of a command or of the previous shell's state.
__sf_odd=1

# Removes the attributes that a command has given to the loop's variables (bash), before __sf_place. Only the builtin
# can undo `readonly`. Returns $1, like __sf_place and __sf_free_command. The loop calls them one after another and not
# inside of each other, because of FUNCNEST.
__sf_mend() {
  case ${BASH_VERSION-} in ?*) command declare -g +ilux __sf_dir "${!__sf_@}" ;; esac
  command return "$1" || return "$1" # bash may be without `command`
}

# The versions of bash, the machines and the C libraries that the builtin is tested with (docs/images.md). It uses names
# of bash's that others may lack or understand differently. An image whose bash does not load builtins keeps the loop.
__sf_loaded=''
case ${BASH_VERSION-}:${MACHTYPE-} in
  5.[123].*:x86_64-*-linux-gnu | 5.2.*:x86_64-*-linux-musl | 5.2.*:aarch64-*-linux-gnu)
    command enable -f "$__sf_library" __sf_step 2>/dev/null && {
      __sf_loaded=,step
      __sf_mend() {
        command __sf_step mend >/dev/null # without the builtin, the user's command_not_found_handle may print
        command return "$1" || return "$1"
      }
    }
    ;;
esac

# Sets __sf_line to the sealed file whose number follows this word in the line.
__sf_find() {
  __sf_line=${__sf_extra#*"$1="}
  __sf_line=$__sf_fd${__sf_line%%[!0-9]*}
}

__sf_return() { command return "$1"; }

# Succeeds in a subshell, where $$ is still the pid of the shell itself. bash has BASHPID instead.
__sf_is_subshell() {
  command read -r __sf_line </proc/self/stat
  case "${__sf_line%% *}" in "$$") command return 1 ;; esac
}

# Removes a function named `command`, which would stop the loop, for the report to name. No text is parsed here: a
# script that was just refused may have damaged the parser of bash.
__sf_free_command() {
  command return "$1" # which a function cannot do for its caller
  __sf_seen=command __sf_odd=1
  case ${BASH_VERSION-} in
    ?*)
      POSIXLY_CORRECT=1 # now no function can take the place of unset
      unset -f command builtin unset
      unset POSIXLY_CORRECT
      ;;
    *) unset -f command ;;
  esac
  command return "$1" || return "$1"
}

# Enables the builtins that the loop needs (bash), after `enable -n`.
__sf_enable() {
  enable command
  command enable alias compgen declare eval exec exit export printf read return set shopt
  command enable test trap true unset .
}

# Saves the status of a command, and switches off options that the loop cannot work with. Fails, so that the loop
# continues. In a shell in which no command works any more, the call succeeds, and the shell ends.
__sf_settle() {
  __sf_status=$1
  # A command has removed its run token. The keeper would wait for a report with it.
  case ${__sf_busy-unset}:${__sf_token-unset} in
    unset:* | :unset) command kill -9 $$ ;;
    :* | ?*:????????) ;;
    *) command kill -9 $$ ;;
  esac
  case $- in
    *[ex]*)
      case $- in *x*) __sf_trace=x ;; esac
      command set +x
      case $- in *e*) __sf_errexit=e ;; esac
      command set +e
      __sf_odd=1
      ;;
  esac
  command return 1
}

# Succeeds when a variable is exported. The text `before` has written the list of these.
__sf_exported() {
  while command read -r __sf_name; do
    case $__sf_name in "export $1" | "export $1="*) command return 0 ;; esac
  done <"$__sf_dir/exported"
  command return 1
}

# Sets a variable for one command: __sf_give NAME VALUE. Its old value is kept for __sf_take.
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

# Changes to the directory of one command. __sf_go_back returns.
__sf_enter() {
  __sf_cwd=$PWD __sf_oldpwd=${OLDPWD-}
  CDPATH='' command cd -- "$1"
}

__sf_go_back() {
  CDPATH='' command cd -- "$__sf_cwd" || __sf_seen=directory
  OLDPWD=$__sf_oldpwd
  command unset __sf_cwd __sf_oldpwd
}

# Replaces `trap` in a command that uses it, so that the loop's trap stays on EXIT. If this command exits the shell, a
# trap of the user's on EXIT runs then; otherwise the trap is kept for the end of the shell.
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
      # The caller may be a function of an earlier command.
      0 | EXIT | exit | SIGEXIT) __sf_action=$__sf_act __sf_wants=exit __sf_odd=1 ;;
      *) command trap -- "$__sf_act" "$__sf_line" ;;
    esac
  done
}

# Makes `trap` call __sf_trap in a command that contains the word, unless the user has defined something of that name.
# In POSIX mode bash has no functions with the names of such builtins, but expands aliases.
__sf_wrap() {
  case ${BASH_VERSION:+:${SHELLOPTS-}:} in
    '' | *:posix:*) command alias trap >/dev/null 2>&1 || { __sf_wrapped=alias && command alias trap=__sf_trap; } ;;
    *) command declare -F trap >/dev/null || { __sf_wrapped=function && command eval 'trap() { __sf_trap "$@"; }'; } ;;
  esac
}

__sf_unwrap() {
  case $__sf_wrapped in
    function) # unless the command has put its own in its place
      command declare -f trap >|"$__sf_dir/old"
      command read -r -d '' __sf_line <"$__sf_dir/old"
      case $__sf_line in *__sf_trap*) command unset -f trap ;; esac
      ;;
    alias) command unalias trap 2>/dev/null || command true ;;
  esac
  __sf_wrapped=''
}

# Parses a sealed file in a copy of this shell, with its aliases and options, and runs nothing of it: its first
# line is `set -n`. A second argument turns extglob on. The status is the parser's, and its messages are in the file
# `old`.
__sf_parse() {
  __sf_find "$1"
  (
    command set +v
    case ${BASH_VERSION-} in ?*) command export LC_ALL=C ;; esac
    case $2 in ?*) command shopt -s extglob ;; esac
    command . "$__sf_line"
  ) </dev/null >/dev/null 2>|"$__sf_dir/old"
}

# Finds the construct inside of which the script in the file ends. The keeper puts a `)` after its end, which is a
# syntax error unless an open here-document or bracket takes it in. bash reports an open here-document by itself. All
# other errors are left to the shell, which reports them at their line, because earlier lines may change how the rest
# is parsed (aliases, extglob). $2: find open brackets and quotes as well (bash).
__sf_find_open() {
  __sf_open='' __sf_parsed=0
  __sf_parse "$1" '' || __sf_parsed=$?
  case ${BASH_VERSION-} in
    '')
      case $__sf_parsed in 0) __sf_open='a here-document' ;; esac
      command return 0
      ;;
  esac
  command read -r -d '' __sf_line <"$__sf_dir/old"
  case $__sf_line in
    *"unexpected token \`('"*) # which only a pattern of extglob may have there, and the script may turn that on
      __sf_parsed=0
      __sf_parse "$1" extglob || __sf_parsed=$?
      command read -r -d '' __sf_line <"$__sf_dir/old"
      ;;
  esac
  case $2:$__sf_parsed:$__sf_line in
    *': warning: here-document at line '* | *'unterminated here-document'*) __sf_open='a here-document' ;;
    ?*:0:* | ?*:*'unexpected EOF while looking for matching'*) __sf_open='a bracket or a quote' ;;
    :0:*) __sf_open='a here-document' ;; # whose delimiter is the `)`
    *:1[23]?:*) __sf_open='a construct that this shell cannot parse' ;; # the parser died of it
  esac
  __sf_line=''
}

# Succeeds when the script in the file ends before the line that begins with `exit`. The keeper puts it in braces, and
# both have to be closed.
__sf_ends_early() {
  __sf_parsed=0
  __sf_parse early "$1" || __sf_parsed=$?
  case ${BASH_VERSION-} in ?*) command read -r -d '' __sf_line <"$__sf_dir/old" ;; esac
  case $__sf_parsed:$__sf_line in
    *here-document*) command return 1 ;;
    0:*) command return 0 ;;
  esac
  command return 1
}

__sf_check() {
  __sf_open='' __sf_line=''
  case $__sf_extra:${BASH_VERSION-} in
    *brackets*:?*) __sf_find_open check brackets ;;
    *documents*) __sf_find_open check '' ;;
  esac
  # The end of a script is not reached if a line that begins with `exit` ends the script on purpose.
  case $__sf_open:$__sf_extra in
    ?*:*early*) ! __sf_ends_early '' || __sf_open='' ;;
  esac
  case $__sf_open:$__sf_extra:${BASH_VERSION-} in
    ?*:*early*:?*) ! __sf_ends_early extglob || __sf_open='' ;;
  esac
  __sf_line=''
}

# In bash an EXIT trap still sees the locals of the functions that ended with it. When another function unsets a local,
# the variable that it hides appears. This is repeated until the global variable appears, which the attribute -t marks.
# That attribute has no effect on variables.
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

# A function may be named set, except in POSIX shells.
__sf_save_options() {
  case ${BASH_VERSION-} in
    ?*)
      command set +o >|"$__sf_dir/names"
      while command read -r __sf_line; do command printf 'command %s\n' "$__sf_line"; done <"$__sf_dir/names"
      ;;
    *) command set +o ;;
  esac >|"$__sf_dir/options"
}

__sf_save_bash() {
  __sf_line=${FUNCNAME[2]-} # below the loop's own
  case $__sf_line in __sf_stop) __sf_line=${FUNCNAME[3]-} ;; esac
  case $__sf_signalled in
    ?*) # here the sourced files are still listed
      for __sf_name in "${FUNCNAME[@]:2}"; do
        case $__sf_name in source) __sf_line='' ;; *) __sf_line=$__sf_name && break ;; esac
      done
      ;;
  esac
  case $__sf_line:$BASH_VERSION in
    :*) ;;
    *:[1-4].*) __sf_flags=$__sf_flags,locals ;;
    *) __sf_reveal ;;
  esac
  # Inside a function the positional parameters are the function's; the shell's are as they were when the command began.
  case $__sf_line in ?*) command eval 'set -- "${__sf_args[@]}"' ;; esac
  case $__sf_extra in *after=*) command . "$__sf_after" ;; esac
  case $! in ?*) __sf_flags="$__sf_flags,jobs" ;; esac
  case ${#DIRSTACK[@]} in 0 | 1) ;; *) __sf_flags="$__sf_flags,dirs" ;; esac
  command declare -F >|"$__sf_dir/names"
  {
    command shopt -p
    command printf '\\command shopt -u expand_aliases\n' # or an alias named alias would be the last one
    command declare -p
    command trap -p
    case $# in 0) ;; *) command printf 'set --' && command printf ' %q' "$@" && command printf '\n' ;; esac
    command alias -p
    case $__sf_signalled in
      ?*) # a new process has to go there
        command printf '\\command '
        command umask -p
        command printf '__sf_line=%q\nCDPATH= \\command \\cd -- %q || \\command \\return\nOLDPWD=$__sf_line\n' \
          "${OLDPWD-}" "$PWD"
        ;;
    esac
    # Functions come last, because they may have the names of these commands.
    command declare -f
    while command read -r; do # into REPLY, without IFS
      case $REPLY in 'declare -f '*) ;; *) command printf '\\command %s\n' "$REPLY" ;; esac
    done <"$__sf_dir/names"
    command printf '\\command '
    command shopt -p expand_aliases
    command printf '%s\n' __sf_whole=1
  } >|"$__sf_dir/state"
}

__sf_save_posix() {
  case $__sf_extra in *after=*) command . "$__sf_after" ;; esac
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

# Reads what `alias` has printed, while IFS is not the user's. The text of an alias may have several lines, and cannot
# be parsed without the last one.
__sf_read_aliases() {
  __sf_aliases='' __sf_text='' IFS=''
  while command read -r __sf_line; do
    case $__sf_text in '') __sf_line=${__sf_line#alias } ;; esac
    __sf_text="$__sf_text$__sf_line
"
    command eval ": $__sf_text" || continue
    __sf_aliases="$__sf_aliases\\alias $__sf_text" __sf_text=''
  done <"$__sf_dir/aliases"
  command unset IFS
}

# exit, set -e, set -u, ${x:?} and SIGURG end here, at any depth of functions, and in bash a signal that nothing traps.
# For an exit, bash leaves the whole script before it runs the trap, so BASH_COMMAND is what bash was started with.
# For a signal, BASH_COMMAND is still what the script was executing.
# $1: the status of the shell. The others are its positional parameters.
__sf_leave() {
  # The next shell has all builtins, but this one may be without those that save its state.
  case ${BASH_VERSION-} in ?*) __sf_enable ;; esac
  {
    __sf_free_command 0
    __sf_mend 0
    __sf_place 0
  } || command true # no reason for `set -e`
  __sf_rc=$1 __sf_signalled=''
  command shift
  case $__sf_busy:${BASH_VERSION+${BASH_COMMAND-}} in
    1: | [!1]*:* | :* | "1:. $__sf_loop") ;;
    *) __sf_signalled=1 ;;
  esac
  # The keeper would wait for a report if a command has removed its run token, or the shell cannot run the line that it
  # has taken.
  case ${__sf_busy-unset}:${__sf_token-unset} in
    unset:* | :unset) command return 0 ;;
    :*) case $__sf_line in ?*) command return 0 ;; esac ;;
    ?*:????????) ;;
    *) command return 0 ;;
  esac
  __sf_busy=''
  __sf_save_options
  case $- in *x*) __sf_trace=x ;; esac
  command set +eux
  __sf_unwrap
  __sf_flags=''
  case $__sf_errexit in e) command printf '%s\n' 'command set -e' >>"$__sf_dir/options" ;; esac
  case $__sf_wants in
    exit) # as in a script, its trap runs now; in a subshell, because it may exit itself
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
  # A command may have left too few descriptors. Then the shell ends with the status that it has.
  command exec </dev/null >"$__sf_dir/report" 2>/dev/null || command return 0
  command printf '%s leaving\n' "$__sf_token"
  command trap - EXIT # A shell that cannot restore its state has to end, and would save it again without end.
  case ${BASH_VERSION-} in
    ?*) __sf_save_bash "$@" ;;
    *) __sf_save_posix "$@" ;;
  esac
  case $__sf_signalled in
    ?*) command printf '%s saved%s\n' "$__sf_token" "$__sf_flags" && command return 0 ;; # and the signal ends the shell
  esac
  case $__sf_step in ?*) command __sf_step hold >/dev/null ;; esac
  __sf_again resumed "$__sf_token" "$__sf_rc" "kept,$__sf_seen$__sf_flags"
}

__sf_stop() {
  {
    __sf_free_command 0
    __sf_mend 0
    __sf_place 0
  } 2>/dev/null || command true
  case $__sf_busy in
    '') __sf_stopped=$__sf_token ;;
    *) # no exit: its trap may already have begun
      __sf_busy=asked
      { __sf_leave 143 "$@"; } 2>/dev/null
      command kill -9 $$
      ;;
  esac
}

# After a re-execution the state is restored, as far as it could be saved. This is one compound command, which the shell
# reads whole before it runs, so the user's aliases and closed descriptors cannot change it.
{
  case ${1-} in
    resumed)
      __sf_arguments="$2 $3 $4" __sf_whole='' # not in the saved state
      command set --
      case ${BASH_VERSION-} in '') __sf_read_aliases ;; esac
      command . "$__sf_dir/state" >/dev/null
      __sf_token=${__sf_arguments%% *} __sf_rc=${__sf_arguments#* } __sf_notes=${__sf_arguments##* }
      __sf_rc=${__sf_rc% *}
      command unset __sf_arguments
      case $__sf_whole in '') __sf_notes=$__sf_notes,incomplete ;; esac
      case ${BASH_VERSION-} in
        ?*) command . "$__sf_dir/hooks" ;;
        *)
          command eval "$__sf_aliases"
          command unset __sf_aliases
          __sf_args=''
          while command test "$__sf_count" -gt 0; do
            __sf_args="\"\$__sf_arg$__sf_count\" $__sf_args"
            __sf_count=$((__sf_count - 1))
          done
          command eval "set -- $__sf_args"
          ;;
      esac
      __sf_busy='' __sf_extra='' __sf_seen='' __sf_errexit='' __sf_wants='' __sf_odd=1
      case $__sf_token in '') __sf_seen=${__sf_notes#kept,} ;; esac # between commands: for the next report
      command . "$__sf_dir/options"
      ;;
    *) __sf_token=ready ;;
  esac
  # A variable that no saved state has, because the shell before may have been without the builtin.
  __sf_step=$__sf_loaded __sf_held=$__sf_loaded
  command unset __sf_loaded
  # A `break` in a command leaves the inner loop. So does a shell in which no command works any more; then the outer
  # loop ends too.
  until command test ''; do
    command true
    until
      # Each returns the status of the command. Quiet: a traced shell would show these lines on the command's stderr.
      {
        __sf_free_command "$?"
        __sf_mend "$?"
        __sf_place "$?"
        __sf_settle "$?"
      } 2>/dev/null
    do
      # This fails when the user has removed the FIFOs; the keeper makes them again for the next shell. Errors of the
      # loop go to the keeper, which reads over them.
      command exec <"$__sf_dir/go" >"$__sf_dir/report" 2>&1 || command kill -9 $$
      case $__sf_busy in
        ?*) # a command has ended, or left by `continue`
          __sf_busy='' __sf_line=''
          case $__sf_back in '') __sf_rc=$__sf_status ;; esac
          __sf_back=''
          case $__sf_odd in
            ?*)
              __sf_notes=same
              __sf_unwrap
              case $__sf_wants in exit) command trap -- "$__sf_action" EXIT ;; esac
              case $__sf_extra in *after=*) command . "$__sf_after" ;; esac
              __sf_line=''
              case $__sf_seen in ?*) __sf_notes=same,$__sf_seen ;; esac
              ;;
          esac
          # The command may have set traps, also in a file that it has sourced. The keeper reads the list,
          # keeps a trap on EXIT for the end of the shell, and asks the loop to set the loop's own trap again (arm).
          case ${BASH_VERSION-} in
            ?*) command trap -p DEBUG RETURN ERR EXIT ;;
            *) command trap ;;
          esac
          ;;
      esac
      case $__sf_odd in ?*) command trap '\__sf_leave "$?" "$@" 2>/dev/null' EXIT ;; esac
      command trap '\__sf_stop "$@"' 23
      case ${__sf_held-} in # signals that the shell before has blocked
        ?*)
          __sf_held=''
          command __sf_step free
          ;;
      esac
      {
        case $__sf_token in
          ?*)
            command printf '%s %s %s\n' "$__sf_token" "$__sf_rc" "$__sf_notes$__sf_step" &&
              case $__sf_odd in
                ?*)
                  __sf_odd='' __sf_seen='' __sf_notes=same __sf_extra='' __sf_wants=''
                  __sf_denied=''
                  ;;
              esac
            ;;
        esac &&
          __sf_token='' __sf_line='' &&
          case $__sf_step$__sf_odd$__sf_missed$__sf_trace$__sf_errexit:${__sf_args-}$# in
            ,step:0) ;;
            *)
              case ${BASH_VERSION:+bash${TMOUT:+:limited}} in
                bash) command read -r __sf_line ;;
                bash*) command read -r -t 99999999 __sf_line ;; # otherwise TMOUT would end it
                *) # The `if` succeeds also when a trap has run `set -n` meanwhile. Then the loop can end.
                  __sf_read=''
                  if command read -r __sf_line; then __sf_read=1; fi
                  case $__sf_read in '') __sf_return 1 ;; esac
                  ;;
              esac
              ;;
          esac
      } || {
        case $?:${#__sf_missed}:${BASH_VERSION-} in
          *:???:*) command kill -9 $$ ;;
          # A signal ends `read`: one that came late, or one that the user traps. Of those there may be any number.
          # dash and ash say 1.
          12[89]:* | 1[3-9]?:*) __sf_missed='' ;;
          1:*:) command eval '__sf_missed= __sf_line=' || command kill -9 $$ ;; # they may be read-only
          1:*) command kill -9 $$ ;; # bash says that of a read-only variable
          *:0:* | *:) ;;
          *) # `enable -n`
            __sf_enable
            __sf_seen=builtins
            ;;
        esac
        __sf_missed=x$__sf_missed __sf_odd=1
        continue
      }
      case $__sf_step:$__sf_line in
        ,step:)
          command __sf_step "$__sf_rc" # in no list with && or ||, where `set -e` would have no effect on scripts
          case $? in 0) ;; *) __sf_step='' ;; esac
          case $__sf_missing in
            ?*)
              __sf_missing=''
              __sf_enable
              __sf_seen=builtins
              ;;
          esac
          __sf_free_command 0
          __sf_place 0
          case $__sf_back:$__sf_line in
            1:*) __sf_odd=1 && continue ;; # of a command
            :) __sf_missed=x __sf_odd=1 && continue ;; # by a signal, or it is another builtin of that name
          esac
          ;;
      esac
      case $__sf_missed$__sf_trace$__sf_errexit:$__sf_line:${__sf_args-}$# in
        :????????[.,\;]:0) # a run token alone, in a shell in which nothing is out of the ordinary
          __sf_token=${__sf_line%?}
          # The redirections are tried one after another, and stderr is opened before the command is parsed.
          command exec </dev/null >"$__sf_dir/stdout" 2>"$__sf_dir/stderr" || command kill -9 $$
          __sf_busy=1
          case $__sf_stopped in "$__sf_token") command exit 143 ;; esac # it came before __sf_busy was set
          case $__sf_rc in
            0) command . "$__sf_script${__sf_token#???????}" ;;
            # $? is the status of the previous command
            *) __sf_return "$__sf_rc" || command . "$__sf_script${__sf_token#???????}" ;;
          esac
          ;;
        *)
          __sf_odd=1 __sf_missed='' __sf_notes=same __sf_token=${__sf_line%% *} __sf_extra='' __sf_input=/dev/null
          __sf_token=${__sf_token%[.,;]}
          case $__sf_line in *' '*) __sf_extra=${__sf_line#* } ;; esac
          case $__sf_extra in
            input*) __sf_input=$__sf_dir/input ;;
            arm*)
              __sf_token='' __sf_extra=''
              continue
              ;;
            # Opens the sealed files' descriptors that a command has closed, from a process that holds them briefly.
            # Only bash can close them. A present descriptor stays, because the keeper has checked it, and this line
            # may be another process's.
            holder=*)
              __sf_count=${__sf_extra#*from=} __sf_line=${__sf_extra#holder=}
              __sf_count=${__sf_count%%[!0-9]*} __sf_line=/proc/${__sf_line%%[!0-9]*}/fd/
              __sf_token='' __sf_extra=''
              case ${BASH_VERSION-} in
                ?*)
                  while command test -e "$__sf_line$__sf_count"; do
                    command test -e "$__sf_fd$__sf_count" ||
                      command eval "command exec $__sf_count<\"\${__sf_line}$__sf_count\""
                    __sf_count=$((__sf_count + 1))
                  done
                  ;;
              esac
              continue
              ;;
            leave*)
              __sf_token=''
              command exec </dev/null >"$__sf_dir/stdout" 2>"$__sf_dir/stderr"
              command trap - EXIT
              case $__sf_extra in *trap*) command . "$__sf_dir/exit" ;; esac
              command exit 0
              ;;
          esac
          case $__sf_extra in
            *documents* | *brackets*)
              __sf_check
              case $__sf_open in
                ?*)
                  command printf 'syntax error: the script ends inside %s\n' "$__sf_open" >"$__sf_dir/stderr"
                  __sf_rc=2 __sf_notes=syntax __sf_line=''
                  continue
                  ;;
              esac
              ;;
          esac
          case $__sf_extra in
            *after=*)
              __sf_find after
              __sf_after=$__sf_line
              __sf_find before
              command . "$__sf_line" || __sf_notes=cwd
              case $__sf_denied in
                ?*)
                  command printf '%s: readonly variable\n' "$__sf_denied" >"$__sf_dir/stderr"
                  __sf_rc=1 __sf_notes=denied
                  ;;
              esac
              case $__sf_notes in
                same) ;;
                *)
                  command . "$__sf_after"
                  __sf_extra='' __sf_line=''
                  continue
                  ;;
              esac
              ;;
          esac
          case $__sf_extra in *traps*) __sf_wrap ;; esac
          command exec <"$__sf_input" >"$__sf_dir/stdout" || command kill -9 $$
          case ${__sf_args-}:$#:${BASH_VERSION-} in
            :0:* | *:) ;;
            *) command eval '__sf_args=("$@")' ;;
          esac
          __sf_busy=1
          case $__sf_stopped in "$__sf_token") command exit 143 ;; esac
          case $__sf_errexit in
            e)
              __sf_errexit=''
              command set -e
              ;;
          esac
          # stderr is opened first, so that output of an EXIT trap is not lost. A traced shell would print that line to
          # stderr, so there the redirection is part of the command.
          case $__sf_trace:$__sf_rc in
            x:*)
              __sf_trace=''
              { command set -x; } 2>/dev/null
              command . "$__sf_script${__sf_token#???????}" 2>"$__sf_dir/stderr"
              ;;
            *:0)
              command exec 2>"$__sf_dir/stderr" || command kill -9 $$
              command . "$__sf_script${__sf_token#???????}"
              ;;
            *)
              command exec 2>"$__sf_dir/stderr" || command kill -9 $$
              __sf_return "$__sf_rc" || command . "$__sf_script${__sf_token#???????}"
              ;;
          esac
          ;;
      esac
    done
  done
  # `break 9` comes here. The EXIT trap saves the state.
  command exit 0
}
