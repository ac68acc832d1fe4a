// Each script asks `shellfleet __complete` for candidates: one a line, with a tab before its description. If there are
// none, the shell completes local files. No space is added after a colon, because a path follows it.

const BASH = `_shellfleet() {
  local line
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do
    COMPREPLY+=("$line")
  done < <("$1" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case "\${COMPREPLY[0]-}" in *:) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _shellfleet shellfleet
`;

const ZSH = `#compdef shellfleet
_shellfleet() {
  local line tab=$'\\t'
  local -a complete_ones open_ones
  for line in "\${(@f)$("$words[1]" __complete -- "\${(@)words[2,CURRENT - 1]}" "$PREFIX" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    if [[ \${line%%$tab*} == *: ]]; then
      open_ones+=("\${\${line%%$tab*}//:/\\\\:}:\${line#*$tab}")
    else
      complete_ones+=("\${\${line%%$tab*}//:/\\\\:}:\${line#*$tab}")
    fi
  done
  if (( \${#complete_ones} + \${#open_ones} == 0 )); then
    _files
    return
  fi
  (( \${#complete_ones} )) && _describe shellfleet complete_ones
  (( \${#open_ones} )) && _describe shellfleet open_ones -S ''
  return 0
}
if [[ \${funcstack[1]} == _shellfleet ]]; then
  _shellfleet "$@"
else
  compdef _shellfleet shellfleet
fi
`;

const FISH = `function __shellfleet_complete
    set -l before (commandline -opc)
    set -l typed (commandline -ct)
    set -l found ($before[1] __complete -- $before[2..-1] "$typed" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$typed"
    end
end
complete -c shellfleet -f -a '(__shellfleet_complete)'
`;

export const COMPLETION_SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
